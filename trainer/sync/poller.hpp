// SPDX-License-Identifier: Apache-2.0
// The event loop's wait: epoll, level triggered, with a time limit finer than a millisecond; and the signals
// that end a program.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "schedule/schedule.hpp"

namespace gradlane::train {

struct PollEvent {
  std::uint64_t key = 0;  // as given to watch()
  bool readable = false;  // or ended, or broken: reading tells
  bool writable = false;
};

class Poller {
 public:
  static Result<Poller> create();

  // Watches for readability. An error with code EPERM: a regular file, which is always readable.
  Status watch(int fd, std::uint64_t key);
  // Also (or no longer) watches for writability.
  Status watch_writable(int fd, std::uint64_t key, bool writable);
  void forget(int fd);
  // Waits for events, no longer than until then; valid until the next call.
  Result<std::span<const PollEvent>> wait(std::optional<Clock::time_point> until);

 private:
  explicit Poller(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
  std::vector<PollEvent> events_;
};

// Blocks SIGINT and SIGTERM in this thread and those it starts from now on, and returns a descriptor that is
// readable once one came. SIGPIPE is ignored.
Result<Fd> catch_signals();
// The name and number of the signal that came.
struct Signal {
  int number = 0;
  const char* name = "";
};
Signal take_signal(int fd);

}  // namespace gradlane::train
