// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/log.hpp"
#include "lab/commands/commands.hpp"

namespace gradlane::lab {

void add_name_option(CLI::App& command, std::string& name) {
  name = "lab";
  command.add_option("--name", name, "Of the lab")->capture_default_str();
}

void finish(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "gradlane-lab: %s\n", status.error().message.c_str());
  std::exit(EXIT_FAILURE);
}

}  // namespace gradlane::lab

int main(int argc, char** argv) {
  using namespace gradlane;
  start_log("gradlane-lab", "warn");
  CLI::App app{"Networks of several hosts on one machine, for tests and demonstrations"};
  app.set_version_flag("--version", GRADLANE_VERSION);
  app.require_subcommand(1);
  app.fallthrough(false);
  app.parse_complete_callback([] {
    if (geteuid() != 0) {
      lab::finish(make_error("network namespaces need root: run gradlane-lab by sudo"));
    }
  });
  lab::add_up(app);
  lab::add_exec(app);
  lab::add_list(app);
  lab::add_break(app);
  lab::add_repair(app);
  lab::add_capture(app);
  lab::add_down(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : 2;
  }
  return EXIT_SUCCESS;
}
