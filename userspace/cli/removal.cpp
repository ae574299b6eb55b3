// SPDX-License-Identifier: Apache-2.0
#include "cli/removal.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "bpf/datapath.hpp"
#include "daemon/host.hpp"
#include "daemon/lock.hpp"
#include "daemon/names.hpp"

namespace gradlane {

Result<std::vector<Job>> remove_instance(const std::string& instance) {
  // A daemon that starts meanwhile waits for the lock; another cleanup is soon done.
  constexpr std::chrono::milliseconds patience{500};
  if (const Status privileged = check_privileges(); !privileged) return privileged.error();
  const auto lock = InstanceLock::take(run_folder, instance, patience);
  if (!lock) return lock.error();
  if (const Status removed = remove_datapath(instance); !removed) return removed.error();
  unlink(socket_path(run_folder, instance).c_str());
  const auto mount = find_cgroup2();
  if (!mount) return std::vector<Job>{};
  return InstanceCgroup(*mount, instance).remove();
}

std::vector<std::string> instances_with_traces() {
  std::set<std::string> names;
  for (const auto& name : pinned_instances()) names.insert(name);
  if (const auto mount = find_cgroup2()) {
    for (const auto& name : instances_with_cgroup(*mount)) names.insert(name);
  }
  std::error_code failed;
  namespace fs = std::filesystem;
  for (fs::directory_iterator entry(run_folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto extension = entry->path().extension();
    if (extension == ".lock" || extension == ".sock") names.insert(entry->path().stem());
  }
  std::erase_if(names, [](const std::string& name) { return !check_instance_name(name); });
  return {names.begin(), names.end()};
}

void warn_of_busy_jobs(const std::vector<Job>& jobs) {
  for (const auto& job : jobs) {
    std::fprintf(
        stderr,
        "gradlane: job %s still has %u processes: its cgroup stays; end them, then run gradlane cleanup\n",
        job.name.c_str(), job.processes);
  }
}

}  // namespace gradlane
