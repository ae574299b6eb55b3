// SPDX-License-Identifier: Apache-2.0
// Starting other programs: no shell, a time limit, and what they complained about in the error.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane::lab {

// Runs a program found by PATH to its end, with input on its standard input. If it fails or takes more than
// 10 s, the error holds the last line of its standard error, and each "Command failed -:N" of a batch is told
// by line N of the input.
Status run_program(const std::vector<std::string>& arguments, const std::string& input = {});

// Starts a program in a session of its own, in the network namespace of the calling thread; standard output
// and error are appended to the file log. Returns its process id; whoever starts it waits for it.
Result<pid_t> start_program(const std::vector<std::string>& arguments, const std::string& log);

// The folder of the running executable, without a slash at the end.
std::string own_folder();

}  // namespace gradlane::lab
