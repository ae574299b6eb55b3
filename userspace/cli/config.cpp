// SPDX-License-Identifier: Apache-2.0
// gradlane config: checks a configuration file without a daemon.
#include <cstdio>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "daemon/report.hpp"
#include "policy/config.hpp"

namespace gradlane {
namespace {

struct CheckOptions {
  std::string file = "/etc/gradlane/gradlaned.toml";
  bool json = false;
};

int run_check(const CheckOptions& options) {
  const auto config = load_config(options.file);
  if (!config) return fail(config.error(), options.json);
  if (options.json) {
    print_json(config_json(*config));
  } else {
    std::printf("%s is valid\n", options.file.c_str());
  }
  return 0;
}

}  // namespace

void add_config(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("config", "Look at configuration files");
  command->require_subcommand(1);
  auto* check = command->add_subcommand("check", "Check a file; with --json show all that would hold");
  const auto options = std::make_shared<CheckOptions>();
  check->add_option("FILE", options->file, "Configuration file (default: /etc/gradlane/gradlaned.toml)");
  check->add_flag("--json", options->json, "Print the effective configuration, or the error, as JSON");
  const char* examples =
      "Examples:\n  gradlane config check\n  gradlane config check new.toml --json | jq .values.lanes";
  command->footer(examples);
  check->footer(examples);
  check->callback([options, &exit_status] { exit_status = run_check(*options); });
}

}  // namespace gradlane
