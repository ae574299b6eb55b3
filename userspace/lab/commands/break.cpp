// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "lab/commands/commands.hpp"
#include "lab/lab.hpp"

namespace gradlane::lab {
namespace {

struct Options {
  std::string name, link;
  bool drop = false;
};

}  // namespace

void add_break(CLI::App& app) {
  auto* command = app.add_subcommand("break", "Cut a link");
  const auto options = std::make_shared<Options>();
  add_name_option(*command, options->name);
  command->add_flag("--drop", options->drop, "The link stays up, but silently loses all packets both ways");
  command->add_option("LINK", options->link, "Its name: the host's, or A-B between switches")->required();
  command->callback([options] {
    finish(break_link(options->name, options->link, options->drop ? Broken::drop : Broken::down));
  });
}

void add_repair(CLI::App& app) {
  auto* command = app.add_subcommand("repair", "Make a cut link whole");
  const auto options = std::make_shared<Options>();
  add_name_option(*command, options->name);
  command->add_option("LINK", options->link, "Its name: the host's, or A-B between switches")->required();
  command->callback([options] { finish(repair_link(options->name, options->link)); });
}

}  // namespace gradlane::lab
