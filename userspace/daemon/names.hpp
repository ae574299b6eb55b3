// SPDX-License-Identifier: Apache-2.0
// Names that become files and cgroup folders: instances and jobs.
#pragma once

#include <string>

#include "core/result.hpp"

namespace gradlane {

// 1 to 64 letters, digits, ".", "_", "-", the first one a letter or a digit; so no path leaves its folder.
Status check_job_name(const std::string& name);
// The same, and neither "kernel", where all instances' common pins are, nor a name that ends like systemd's
// (.service, .scope, .slice), for its cgroups may be in our slice.
Status check_instance_name(const std::string& name);

}  // namespace gradlane
