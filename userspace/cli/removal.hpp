// SPDX-License-Identifier: Apache-2.0
// Taking away what an instance without a daemon has left: for `gradlane off` and `gradlane cleanup`.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "daemon/cgroup.hpp"

namespace gradlane {

// Removes pins, programs, cgroups and socket of an instance, holding its lock meanwhile. Returns the jobs
// that still have processes: their cgroups stay. Nothing there is no error; a live daemon is.
Result<std::vector<Job>> remove_instance(const std::string& instance);

// The names of all instances that have left anything, live or not.
std::vector<std::string> instances_with_traces();

// "job NAME still has N processes: ..." for each.
void warn_of_busy_jobs(const std::vector<Job>& jobs);

}  // namespace gradlane
