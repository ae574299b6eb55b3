// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>

#include "lab/commands/commands.hpp"
#include "lab/lab.hpp"

namespace gradlane::lab {

void add_down(CLI::App& app) {
  auto* command = app.add_subcommand("down", "Take a lab down, also a crashed one");
  struct Options {
    std::string name;
    bool all = false;
  };
  const auto options = std::make_shared<Options>();
  add_name_option(*command, options->name);
  command->add_flag("--all", options->all, "Every lab on this machine")->excludes("--name");
  command->callback([options] {
    const auto labs = all_labs();
    if (!options->all && std::find(labs.begin(), labs.end(), options->name) == labs.end()) {
      std::printf("there is no lab %s\n", options->name.c_str());
    }
    for (const auto& lab : options->all ? labs : std::vector{options->name}) {
      finish(take_down(lab));
    }
  });
}

}  // namespace gradlane::lab
