// SPDX-License-Identifier: Apache-2.0
#include "daemon/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/files.hpp"

namespace gradlane {
namespace {

// Whether path still names the file behind fd: the holder before us removes it when it is done.
bool is_same_file(int fd, const std::string& path) {
  struct stat open_file{}, named_file{};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named_file) == 0 &&
         open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

pid_t written_pid(const std::string& path) {
  const auto text = read_file(path);
  return text ? static_cast<pid_t>(std::strtol(text->c_str(), nullptr, 10)) : 0;
}

}  // namespace

std::string lock_path(const std::string& folder, const std::string& instance) {
  return folder + "/" + instance + ".lock";
}

std::string socket_path(const std::string& folder, const std::string& instance) {
  return folder + "/" + instance + ".sock";
}

Result<InstanceLock> InstanceLock::take(const std::string& folder, const std::string& instance,
                                        std::chrono::milliseconds patience) {
  const std::string path = lock_path(folder, instance);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return system_error("make", folder, errno);
    Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file && errno != ENOENT) return system_error("open the lock", path, errno);
    if (file && flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_same_file(file.get(), path)) {
        const std::string pid = std::to_string(getpid()) + "\n";
        if (ftruncate(file.get(), 0) != 0 ||
            pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
          return system_error("write the lock", path, errno);
        }
        return InstanceLock(std::move(file), path);
      }
    } else if (file && errno != EWOULDBLOCK) {
      return system_error("lock", path, errno);
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{"instance " + instance + " runs already with pid " + std::to_string(written_pid(path)) +
                   ": stop it with gradlane off --instance " + instance + ", or choose another --instance",
               EWOULDBLOCK};
}

InstanceLock::~InstanceLock() {
  if (!file_) return;
  // While it is locked: whoever waits for it sees that the name is gone and makes a new file.
  unlink(path_.c_str());
  rmdir(std::filesystem::path(path_).parent_path().c_str());  // stays if another instance lives in it
}

pid_t lock_holder(const std::string& folder, const std::string& instance) {
  const std::string path = lock_path(folder, instance);
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return 0;
  // A shared lock, and only for an instant: two that ask do not take each other for the holder.
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return 0;
  return written_pid(path);
}

}  // namespace gradlane
