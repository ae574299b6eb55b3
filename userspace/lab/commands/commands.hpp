// SPDX-License-Identifier: Apache-2.0
// The sub-commands of gradlane-lab: each adds itself to the command line; its action runs when it was given.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/result.hpp"

namespace gradlane::lab {

// Adds the option --name, default "lab".
void add_name_option(CLI::App& command, std::string& name);

// Prints an error and ends the program with status 1 if there is one.
void finish(const Status& status);

void add_up(CLI::App& app);
void add_exec(CLI::App& app);
void add_list(CLI::App& app);
void add_break(CLI::App& app);
void add_repair(CLI::App& app);
void add_capture(CLI::App& app);
void add_down(CLI::App& app);

}  // namespace gradlane::lab
