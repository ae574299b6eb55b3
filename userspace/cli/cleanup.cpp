// SPDX-License-Identifier: Apache-2.0
// gradlane cleanup: removes what instances without a daemon have left behind.
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/instance_options.hpp"
#include "cli/output.hpp"
#include "cli/removal.hpp"
#include "daemon/lock.hpp"

namespace gradlane {
namespace {

int clean_one(const InstanceOptions& options) {
  const auto busy = remove_instance(options.instance);
  if (!busy) return fail(busy.error(), options.json);
  warn_of_busy_jobs(*busy);
  if (options.json) {
    print_json({{"removed", {options.instance}}, {"live", nlohmann::json::array()}});
  } else {
    std::printf("instance %s: nothing is left\n", options.instance.c_str());
  }
  return 0;
}

int clean_all(bool as_json) {
  nlohmann::json removed = nlohmann::json::array(), live = nlohmann::json::array();
  bool complete = true;  // an instance that cannot be cleaned does not keep the others from it
  for (const auto& name : instances_with_traces()) {
    if (const pid_t holder = lock_holder(run_folder, name)) {
      live.push_back(name);
      if (!as_json)
        std::printf("instance %s: left alone, its daemon runs with pid %d\n", name.c_str(), holder);
      continue;
    }
    const auto busy = remove_instance(name);
    if (!busy) {
      complete = false;
      std::fprintf(stderr, "gradlane: instance %s: %s\n", name.c_str(), busy.error().message.c_str());
      continue;
    }
    warn_of_busy_jobs(*busy);
    removed.push_back(name);
    if (!as_json) std::printf("instance %s: nothing is left\n", name.c_str());
  }
  if (as_json) {
    print_json({{"removed", removed}, {"live", live}});
  } else if (complete && removed.empty() && live.empty()) {
    std::printf("there was nothing to remove\n");
  }
  return complete ? 0 : 1;
}

}  // namespace

void add_cleanup(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("cleanup", "Remove what a daemon that is gone has left behind");
  const auto options = add_instance_options(*command);
  const auto all = std::make_shared<bool>(false);
  command->add_flag("--all", *all, "Every instance that has left anything and has no live daemon")
      ->excludes(command->get_option("--instance"));
  command->footer(
      "Pins, programs, filters, cgroups without processes, sockets. Doing it again is no error; a live "
      "daemon's\n"
      "instance is refused (use gradlane off).\n"
      "Examples:\n  gradlane cleanup\n  gradlane cleanup --all --json");
  command->callback(
      [options, all, &exit_status] { exit_status = *all ? clean_all(options->json) : clean_one(*options); });
}

}  // namespace gradlane
