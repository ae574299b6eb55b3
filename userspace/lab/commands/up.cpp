// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "lab/commands/commands.hpp"
#include "lab/lab.hpp"

namespace gradlane::lab {

void add_up(CLI::App& app) {
  auto* command = app.add_subcommand("up", "Make a lab from a topology file");
  const auto options = std::make_shared<UpOptions>();
  command->add_option("FILE", options->file, "The topology (docs/lab.md)")->required();
  command->add_option("--name", options->name, "Of the lab, instead of the file's");
  command->add_flag_callback("--no-daemons", [options] { options->daemons = false; }, "Start no gradlaned");
  command->add_option("--daemon", options->daemon,
                      "The gradlaned to start, instead of the one next to this program");
  command
      ->add_option("--wait", options->wait_s, "Seconds that the daemons may take to be ready, 10 if not said")
      ->check(CLI::Range(1, 600));
  command->callback([options] {
    if (!options->name.empty() && !is_lab_name(options->name)) {
      finish(make_error(
          "\"" + options->name +
          "\" cannot be the name of a lab: it must be a lower-case letter, then up to 15 of a-z, 0-9 "
          "and _ (no hyphen)"));
    }
    const auto name = bring_up(*options);
    if (!name) finish(name.error());
    std::printf("lab %s is up\n", name->c_str());
  });
}

}  // namespace gradlane::lab
