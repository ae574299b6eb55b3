// SPDX-License-Identifier: Apache-2.0
// How a worker gets in touch with its server, before the training.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "sync/connection.hpp"
#include "sync/poller.hpp"
#include "sync/setup.hpp"
#include "sync/socket.hpp"

namespace gradlane::train {

// Waits that a signal ends.
class Patience {
 public:
  explicit Patience(int signal_fd) : signal_fd_(signal_fd) {}

  // Until fd is ready for these poll() events, false if it is not by then. An error if a signal came.
  Result<bool> wait(int fd, short events, Clock::time_point until);
  // Just passes the time.
  Status pass(Clock::time_point until);
  // The signal that came; its number is 0 if none did.
  const Signal& signal() const { return signal_; }

 private:
  int signal_fd_;
  Signal signal_;
};

// A connected socket with these options. Tries again until the limit is over while nobody listens there.
Result<Fd> reach(const Address& server, const SocketOptions& options, std::chrono::seconds limit,
                 Patience& patience);

// Asks the server for its settings as this rank.
Result<TrainingSetup> ask_setup(const Address& server, std::uint32_t rank, std::chrono::seconds limit,
                                Patience& patience);

}  // namespace gradlane::train
