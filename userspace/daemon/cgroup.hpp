// SPDX-License-Identifier: Apache-2.0
// The cgroup v2 folders of an instance: gradlane.slice/INSTANCE, and one folder per job below it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane {

struct Job {
  std::string name;
  std::uint64_t cgroup_id = 0;  // as BPF programs see it
  std::uint32_t processes = 0;  // in its folder and below
};

class InstanceCgroup {
 public:
  // mount: where cgroup v2 is mounted. Changes nothing yet.
  InstanceCgroup(const std::string& mount, const std::string& instance);

  const std::string& path() const { return path_; }
  std::string job_path(const std::string& job) const { return path_ + "/" + job; }
  bool exists() const;

  // Makes the instance's folder; it may be there already.
  Status make() const;
  // Makes a job's folder in an instance's folder that exists; it may be there already.
  Status make_job(const std::string& job) const;
  // The id of a job's cgroup; an error if there is no such job.
  Result<std::uint64_t> job_id(const std::string& job) const;
  // All jobs, by name.
  std::vector<Job> jobs() const;
  // Removes a job's folder, and those below it, if no process is left; EBUSY otherwise.
  Status remove_job(const std::string& job) const;
  // Removes every empty job, then the instance's folder and the slice if those are empty too. The jobs that
  // still have processes are returned, and stay with the folders above them.
  std::vector<Job> remove() const;

 private:
  std::string slice_;
  std::string path_;
};

// The names of all instances that have a folder below this mount of cgroup v2. Folders that systemd may have
// in the slice are none.
std::vector<std::string> instances_with_cgroup(const std::string& mount);

}  // namespace gradlane
