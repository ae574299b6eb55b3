// SPDX-License-Identifier: Apache-2.0
// Network namespaces as `ip netns` names them: entering one, who lives in one, which of a lab there are.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane::lab {

// Moves the calling thread into a namespace; mounts stay as they are.
Status enter_namespace(const std::string& name);

// Runs a function in a namespace, on a thread of its own, and waits for it.
Status in_namespace(const std::string& name, const std::function<Status()>& function);

// The names of all namespaces of a lab, gl-LAB-*.
std::vector<std::string> namespaces_of_lab(const std::string& lab);

// The processes that are in one of the namespaces, but for the calling one.
std::vector<pid_t> processes_in(const std::vector<std::string>& namespaces);

}  // namespace gradlane::lab
