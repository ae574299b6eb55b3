// SPDX-License-Identifier: Apache-2.0
// Small files, whole: of /proc, /sys and /run, and configurations.
#pragma once

#include <string>

#include "core/result.hpp"

namespace gradlane {

// The content of a small file, at most 4 MiB of it.
Result<std::string> read_file(const std::string& path);
// Writes text to an existing file in one write, as cgroup files want it.
Status write_file(const std::string& path, const std::string& text);

}  // namespace gradlane
