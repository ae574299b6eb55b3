// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/files.hpp"
#include "daemon/host.hpp"
#include "lab/daemons.hpp"
#include "lab/lab.hpp"
#include "lab/netns.hpp"
#include "lab/port.hpp"
#include "lab/process.hpp"

namespace gradlane::lab {
namespace {

std::atomic<bool> interrupted = false;

void interrupt(int) { interrupted = true; }

Status check_interrupted() {
  if (interrupted) return make_error("interrupted");
  return {};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

Status apply_sysctls(const Node& node) {
  return in_namespace(node.name_space, [&]() -> Status {
    for (const auto& [key, value] : node.sysctls) {
      if (Status done = write_file("/proc/sys/" + key, value); !done) return done;
    }
    return {};
  });
}

Status build_network(const Plan& plan) {
  Status done = run_program({"ip", "-batch", "-"}, joined(plan.namespaces));
  for (const auto& node : plan.nodes) {
    if (done) done = apply_sysctls(node);
  }
  if (done) done = run_program({"ip", "-batch", "-"}, joined(plan.links));
  for (const auto& node : plan.nodes) {
    if (done) done = check_interrupted();
    if (done) done = run_program({"tc", "-n", node.name_space, "-batch", "-"}, joined(node.tc));
    if (done) done = run_program({"ip", "-n", node.name_space, "-batch", "-"}, joined(node.ip));
  }
  for (const auto& port : plan.ports) {
    if (done) done = apply_offload(port);
  }
  if (done) done = attach_port_programs(plan.ports);
  if (done) done = wait_for_carrier(plan.ports);
  return done;
}

Status build(const UpOptions& options, const Plan& plan, State& state) {
  Status done = write_state(state);
  if (done) done = build_network(plan);
  if (done) done = check_interrupted();
  if (done && options.daemons && !plan.daemons.empty()) {
    const std::string daemon = options.daemon.empty() ? own_folder() + "/gradlaned" : options.daemon;
    done = prepare_bpf_file_system();
    if (done) done = start_daemons(plan, daemon, state);
    if (done) done = write_state(state);
    if (done) done = wait_until_ready(plan, state, options.wait_s, check_interrupted);
  }
  if (done) {
    state.complete = true;
    done = write_state(state);
  }
  return done;
}

}  // namespace

Result<std::string> bring_up(const UpOptions& options) {
  auto topology = load_topology(options.file);
  if (!topology) return topology.error();
  State state;
  state.lab = !options.name.empty() ? options.name : !topology->name.empty() ? topology->name : "lab";
  state.topology = *std::move(topology);
  const Plan plan = make_plan(state.topology, state.lab);

  struct sigaction action{};
  action.sa_handler = interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  const auto made = make_state_folder(state.lab);
  if (!made) return made.error();
  if (!*made || !namespaces_of_lab(state.lab).empty()) {
    if (*made) rmdir(state_folder(state.lab).c_str());
    return make_error("lab \"" + state.lab +
                      "\" is there already: take it down by `gradlane-lab down --name " + state.lab +
                      "`, or give this one another name by --name");
  }
  Status built;
  {
    const auto lock = lock_lab(state.lab);
    built = lock ? build(options, plan, state) : Status(lock.error());
  }
  if (built) return state.lab;
  if (const Status down = take_down(state.lab); !down) {
    return Error{built.error().message + "; and then: " + down.error().message, built.error().code};
  }
  return built.error();
}

}  // namespace gradlane::lab
