// SPDX-License-Identifier: Apache-2.0
// One daemon per instance: a lock file that dies with its process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "core/fd.hpp"
#include "core/result.hpp"

namespace gradlane {

// Where locks and sockets are.
inline constexpr const char* run_folder = "/run/gradlane";
std::string lock_path(const std::string& folder, const std::string& instance);
std::string socket_path(const std::string& folder, const std::string& instance);

// The exclusive lock of an instance; released, and its file removed, when this goes.
class InstanceLock {
 public:
  // Makes folder if it is not there. While another process has the lock, tries again for as long as patience:
  // a predecessor that is just stopping, or a `gradlane cleanup`. Then the error says who has it.
  static Result<InstanceLock> take(const std::string& folder, const std::string& instance,
                                   std::chrono::milliseconds patience);
  InstanceLock(InstanceLock&&) = default;
  InstanceLock& operator=(InstanceLock&&) = delete;
  ~InstanceLock();

 private:
  InstanceLock(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Fd file_;
  std::string path_;
};

// The process that holds the instance's lock, 0 if none does.
pid_t lock_holder(const std::string& folder, const std::string& instance);

}  // namespace gradlane
