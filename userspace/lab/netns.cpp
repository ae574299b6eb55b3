// SPDX-License-Identifier: Apache-2.0
#include "lab/netns.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <thread>

#include "core/fd.hpp"

namespace gradlane::lab {
namespace {

const std::string folder = "/run/netns/";

}  // namespace

Status enter_namespace(const std::string& name) {
  const std::string path = folder + name;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("open the network namespace", path, errno);
  if (setns(file.get(), CLONE_NEWNET) != 0) return system_error("enter the network namespace", path, errno);
  return {};
}

Status in_namespace(const std::string& name, const std::function<Status()>& function) {
  Status result;
  std::thread thread([&] {
    result = enter_namespace(name);
    if (result) result = function();
  });
  thread.join();
  return result;
}

std::vector<std::string> namespaces_of_lab(const std::string& lab) {
  const std::string prefix = "gl-" + lab + "-";
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<pid_t> processes_in(const std::vector<std::string>& namespaces) {
  std::vector<std::pair<dev_t, ino_t>> wanted;
  for (const auto& name : namespaces) {
    struct stat info{};
    if (stat((folder + name).c_str(), &info) == 0) wanted.emplace_back(info.st_dev, info.st_ino);
  }
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t process = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), process);
    if (parsed.ptr != name.data() + name.size() || process == getpid()) continue;
    struct stat info{};
    if (stat((entry.path() / "ns/net").c_str(), &info) != 0) continue;
    if (std::find(wanted.begin(), wanted.end(), std::pair(info.st_dev, info.st_ino)) != wanted.end()) {
      found.push_back(process);
    }
  }
  return found;
}

}  // namespace gradlane::lab
