// SPDX-License-Identifier: Apache-2.0
#include "lab/daemons.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/cgroup.hpp"
#include "daemon/host.hpp"
#include "lab/netns.hpp"
#include "lab/process.hpp"

namespace gradlane::lab {
namespace {

constexpr const char* bpf_root = "/sys/fs/bpf";
// An empty file that says: the lab has mounted it.
const std::string mounted_note = std::string(state_root) + "/mounted-bpffs";

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

Status prepare_bpf_file_system() {
  if (bpf_file_system_mounted()) return {};
  if (Status noted = replace_file(mounted_note, ""); !noted) return noted;
  return ensure_bpf_file_system();
}

void release_bpf_file_system() {
  if (unlink(mounted_note.c_str()) != 0) return;
  std::error_code error;
  if (std::filesystem::is_empty(bpf_root, error)) umount2(bpf_root, 0);
}

Status start_daemons(const Plan& plan, const std::string& executable, State& state) {
  if (access(executable.c_str(), X_OK) != 0) {
    Error error = system_error("run the daemon", executable, errno);
    error.message += "; build it, name it by --daemon, or start the lab with --no-daemons";
    return error;
  }
  for (const auto& daemon : plan.daemons) {
    const std::string config = daemon_config(plan.lab, daemon.host);
    if (Status written = replace_file(config, daemon.config); !written) return written;
    const Status started = in_namespace(namespace_of(plan.lab, daemon.host), [&]() -> Status {
      const auto process = start_program({executable, "--instance", daemon.instance, "--config", config},
                                         daemon_log(plan.lab, daemon.host));
      if (!process) return process.error();
      state.daemons[daemon.host] = *process;
      return {};
    });
    if (!started) return started;
  }
  return {};
}

bool is_ready(const std::string& lab, const std::string& host) {
  std::ifstream file(daemon_log(lab, host));
  std::string line;
  while (std::getline(file, line)) {
    if (line == "ready") return true;
  }
  return false;
}

Status wait_until_ready(const Plan& plan, const State& state, int limit_s,
                        const std::function<Status()>& go_on) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s);
  for (const auto& daemon : plan.daemons) {
    while (!is_ready(plan.lab, daemon.host)) {
      if (Status proceed = go_on(); !proceed) return proceed;
      const std::string name = "gradlaned of " + daemon.host;
      int status = 0;
      const bool ended = waitpid(state.daemons.at(daemon.host), &status, WNOHANG) > 0;
      if (ended || std::chrono::steady_clock::now() > deadline) {
        const std::string last = last_line(daemon_log(plan.lab, daemon.host));
        return make_error(
            name +
            (ended ? " ended at its start" : " was not ready within " + std::to_string(limit_s) + " s") +
            (last.empty() ? "" : ": " + last));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return {};
}

Status clean_after_daemon(const std::string& instance) {
  std::error_code error;
  const bool left = std::filesystem::exists("/run/gradlane/" + instance + ".sock", error) ||
                    std::filesystem::exists("/run/gradlane/" + instance + ".lock", error) ||
                    std::filesystem::exists(std::string(bpf_root) + "/gradlane/" + instance, error);
  if (left) {
    const Status cleaned = run_program({own_folder() + "/gradlane", "cleanup", "--instance", instance});
    if (!cleaned) return cleaned;
  }
  const auto mount = find_cgroup2();
  if (!mount) return {};
  const auto busy = InstanceCgroup(*mount, instance).remove();
  if (!busy.empty()) {
    return make_error("job " + busy.front().name + " of instance " + instance +
                      " still has processes, which are not in the lab: end them, then take it down again");
  }
  return {};
}

}  // namespace gradlane::lab
