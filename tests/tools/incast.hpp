// SPDX-License-Identifier: Apache-2.0
// The two ends of gl-incast.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradlane::incast {

// Asks its senders for blocks. Batch B asks for bytes[B modulo their number] of each.
struct Receiver {
  int port = 0;
  int flows = 0;
  std::vector<std::uint64_t> bytes;
  int batches = 0;
  int pause_ms = 0;
  int pause_after = 1;   // batches between two pauses
  double seconds = 0;    // 0: no limit
  int tokens = 0;        // senders that may send at a time; 0: all
  int window_clamp = 0;  // 0: none
  bool hold = false;
};

// Answers a receiver over some connections.
struct Sender {
  std::string address;
  std::string port;
  int flows = 0;
  std::string congestion;
  int priority = 0;
  std::uint64_t pacing_rate = 0;  // 0: none
  std::uint64_t write_rate = 0;   // 0: as fast as the socket takes it
};

// Both return the exit status; a failed system call ends the program with one line.
int run(const Receiver& receiver);
int run(const Sender& sender);

// Ends the program with "gl-incast: cannot WHAT: reason".
[[noreturn]] void fail(const char* what);

// Calls epoll_ctl for a descriptor with a pointer as its data.
void watch(int epoll, int descriptor, void* data, unsigned events, int operation);

// Without progress for so long, both ends give up.
constexpr int kTimeoutMs = 20000;

}  // namespace gradlane::incast
