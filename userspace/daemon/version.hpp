// SPDX-License-Identifier: Apache-2.0
// What --version prints.
#pragma once

#include <string>

namespace gradlane {

// Our version, libbpf's, and the running kernel's.
std::string version_text();

}  // namespace gradlane
