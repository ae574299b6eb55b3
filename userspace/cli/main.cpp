// SPDX-License-Identifier: Apache-2.0
// gradlane: the command line.
#include "cli/commands.hpp"
#include "core/log.hpp"
#include "daemon/version.hpp"

int main(int argc, char** argv) {
  constexpr int wrong_usage = 2;
  gradlane::start_log("gradlane", "warn");
  CLI::App app("Lanes, congestion control and paths for distributed training.", "gradlane");
  app.require_subcommand(1);
  app.set_version_flag("--version", gradlane::version_text);
  app.footer(
      "Examples:\n"
      "  gradlane doctor                      what this host can do, and what to change\n"
      "  gradlane status                      what the daemon does\n"
      "  gradlane run --lane bulk -- rsync -a data host:/data\n"
      "Each command has its own --help. See gradlane(8).");
  int exit_status = 0;
  gradlane::add_status(app, exit_status);
  gradlane::add_doctor(app, exit_status);
  gradlane::add_run(app, exit_status);
  gradlane::add_off(app, exit_status);
  gradlane::add_cleanup(app, exit_status);
  gradlane::add_config(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : wrong_usage;
  }
  return exit_status;
}
