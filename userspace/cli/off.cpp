// SPDX-License-Identifier: Apache-2.0
// gradlane off: takes an instance out of the kernel, with its daemon or without.
#include <cstdio>
#include <thread>

#include "cli/commands.hpp"
#include "cli/instance_options.hpp"
#include "cli/output.hpp"
#include "cli/removal.hpp"
#include "daemon/client.hpp"
#include "daemon/lock.hpp"

namespace gradlane {
namespace {

// Waits until the daemon has gone; it says in its log what could not be taken away.
Status wait_for_end(const std::string& instance) {
  constexpr std::chrono::seconds patience{10};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (const pid_t holder = lock_holder(run_folder, instance)) {
    if (std::chrono::steady_clock::now() > deadline) {
      return make_error("the daemon (pid " + std::to_string(holder) +
                        ") was told to stop but is still there after 10 s: see its log");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

int run_off(const InstanceOptions& options) {
  const auto report = [&](const char* what, const char* text) {
    if (options.json) {
      print_json({{"instance", options.instance}, {"stopped", what}});
    } else {
      std::printf("instance %s: %s\n", options.instance.c_str(), text);
    }
    return 0;
  };
  const auto answer = ask(socket_path(run_folder, options.instance), {Command::stop, "", GL_LANES});
  if (answer) {
    const Status ended = wait_for_end(options.instance);
    return ended ? report("daemon", "the daemon has stopped") : fail(ended.error(), options.json);
  }
  if (answer.error().code != ENOENT && answer.error().code != ECONNREFUSED)
    return fail(answer.error(), options.json);
  const auto busy = remove_instance(options.instance);
  if (!busy) return fail(busy.error(), options.json);
  warn_of_busy_jobs(*busy);
  return report("leftovers", "no daemon was there; nothing of it is left in the kernel");
}

}  // namespace

void add_off(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("off", "Stop an instance and take it out of the kernel");
  const auto options = add_instance_options(*command);
  command->footer(
      "Traffic goes on as it would without gradlane. Works without a daemon, too.\n"
      "Examples:\n  gradlane off\n  gradlane off --instance test");
  command->callback([options, &exit_status] { exit_status = run_off(*options); });
}

}  // namespace gradlane
