// SPDX-License-Identifier: Apache-2.0
// The sub-commands of gradlane, one file each. add_X() declares the command, its options and its help; when
// it is parsed it runs and sets exit_status.
#pragma once

#include <CLI/CLI.hpp>

namespace gradlane {

void add_status(CLI::App& app, int& exit_status);
void add_doctor(CLI::App& app, int& exit_status);
void add_run(CLI::App& app, int& exit_status);
void add_off(CLI::App& app, int& exit_status);
void add_cleanup(CLI::App& app, int& exit_status);
void add_config(CLI::App& app, int& exit_status);

}  // namespace gradlane
