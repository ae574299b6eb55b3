// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "daemon/cgroup.hpp"
#include "daemon/host.hpp"
#include "lab/daemons.hpp"
#include "lab/lab.hpp"
#include "lab/netns.hpp"
#include "lab/process.hpp"

namespace gradlane::lab {
namespace {

// Sends a signal to all processes in the namespaces until there are none, for 10 s. True if there are none.
bool end_processes(const std::vector<std::string>& namespaces, int signal) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::vector<pid_t> signalled;
  while (true) {
    const auto living = processes_in(namespaces);
    if (living.empty()) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    for (const pid_t process : living) {
      // Once each: a second SIGTERM is a wish for haste to some programs.
      if (std::find(signalled.begin(), signalled.end(), process) == signalled.end()) {
        kill(process, signal);
        signalled.push_back(process);
      }
      // Those whose parent we are stay in the list until somebody asks how they ended.
      waitpid(process, nullptr, WNOHANG);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// The instances of a lab: by its state, its namespaces, and the cgroups, since any of them may be lost.
std::vector<std::string> instances_of(const std::string& lab, const std::vector<std::string>& namespaces) {
  std::vector<std::string> names;
  for (const auto& name : namespaces) names.push_back(name.substr(3));
  if (const auto state = read_state(lab)) {
    for (const auto& [host, process] : state->daemons) names.push_back(instance_of(lab, host));
  }
  if (const auto mount = find_cgroup2()) {
    for (const auto& name : instances_with_cgroup(*mount)) {
      if (name.starts_with(lab + "-")) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

Status take_down(const std::string& lab) {
  const auto lock = lock_lab(lab);
  if (!lock) return lock.error();
  const auto namespaces = namespaces_of_lab(lab);
  const auto instances = instances_of(lab, namespaces);
  if (!end_processes(namespaces, SIGTERM) && !end_processes(namespaces, SIGKILL)) {
    return make_error("a process in lab \"" + lab +
                      "\" does not even end by SIGKILL: see `ps -e`, then try again");
  }
  Status first;
  for (const auto& instance : instances) {
    if (Status cleaned = clean_after_daemon(instance); !cleaned && first) first = cleaned;
  }
  std::string removals;
  for (const auto& name : namespaces) removals += "netns delete " + name + "\n";
  if (Status removed = run_program({"ip", "-force", "-batch", "-"}, removals); !removed && first)
    first = removed;
  if (!first) return first;
  std::error_code error;
  std::filesystem::remove_all(state_folder(lab), error);
  if (error) return system_error("remove", state_folder(lab), error.value());
  if (all_labs().empty()) {
    release_bpf_file_system();
    rmdir(state_root);
  }
  return {};
}

}  // namespace gradlane::lab
