// SPDX-License-Identifier: Apache-2.0
#include "daemon/cgroup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/files.hpp"
#include "daemon/names.hpp"

namespace gradlane {
namespace {

namespace fs = std::filesystem;

// The names of the folders directly in a folder, sorted; none if it cannot be read (any more).
std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry(path, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code gone;
    if (entry->is_directory(gone) && !entry->is_symlink(gone)) names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint32_t count_processes(const std::string& path) {
  std::uint32_t count = 0;
  if (const auto text = read_file(path + "/cgroup.procs")) {
    count = static_cast<std::uint32_t>(std::count(text->begin(), text->end(), '\n'));
  }
  for (const auto& name : folders_in(path)) count += count_processes(fs::path(path) / name);
  return count;
}

// The folder and all below it, from the leaves up. The kernel refuses (EBUSY) while a process is in one.
Status remove_tree(const std::string& path) {
  for (const auto& name : folders_in(path)) {
    if (const Status removed = remove_tree(fs::path(path) / name); !removed) return removed;
  }
  if (rmdir(path.c_str()) != 0 && errno != ENOENT) return system_error("remove the cgroup", path, errno);
  return {};
}

Status make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return {};
  if (errno != EEXIST) return system_error("make the cgroup", path, errno);
  // A name such as cgroup.procs is there as well, but as a file of the kernel.
  struct stat state{};
  if (stat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode)) return {};
  return make_error("cannot make the cgroup " + path +
                    ": the kernel has a file of that name, choose another");
}

}  // namespace

InstanceCgroup::InstanceCgroup(const std::string& mount, const std::string& instance)
    : slice_(mount + "/gradlane.slice"), path_(slice_ + "/" + instance) {}

bool InstanceCgroup::exists() const {
  std::error_code failed;
  return fs::is_directory(path_, failed);
}

Status InstanceCgroup::make() const {
  Status made = make_folder(slice_);
  if (made) made = make_folder(path_);
  if (made || (made.error().code != EACCES && made.error().code != EPERM)) return made;
  // The root of the hierarchy is read-only even for root, unless it may override that.
  return Error{
      made.error().message +
          "; run gradlaned as root with CAP_DAC_OVERRIDE, or by systemd in gradlane.slice as our unit does",
      made.error().code};
}

Status InstanceCgroup::make_job(const std::string& job) const { return make_folder(job_path(job)); }

Result<std::uint64_t> InstanceCgroup::job_id(const std::string& job) const {
  struct stat state{};
  const std::string path = job_path(job);
  if (stat(path.c_str(), &state) != 0) return system_error("find the cgroup", path, errno);
  if (!S_ISDIR(state.st_mode)) return system_error("find the cgroup", path, ENOTDIR);
  return static_cast<std::uint64_t>(state.st_ino);
}

std::vector<Job> InstanceCgroup::jobs() const {
  std::vector<Job> found;
  for (const auto& name : folders_in(path_)) {
    if (const auto id = job_id(name)) found.push_back({name, *id, count_processes(job_path(name))});
  }
  return found;
}

Status InstanceCgroup::remove_job(const std::string& job) const { return remove_tree(job_path(job)); }

std::vector<Job> InstanceCgroup::remove() const {
  std::vector<Job> left;
  for (const auto& job : jobs()) {
    if (!remove_job(job.name)) left.push_back(job);
  }
  rmdir(path_.c_str());
  rmdir(slice_.c_str());
  return left;
}

std::vector<std::string> instances_with_cgroup(const std::string& mount) {
  auto names = folders_in(mount + "/gradlane.slice");
  std::erase_if(names, [](const std::string& name) { return !check_instance_name(name); });
  return names;
}

}  // namespace gradlane
