// SPDX-License-Identifier: Apache-2.0
// The commands that steer a server: what it does when, one after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace gradlane::train {

struct Command {
  enum class Kind : std::uint8_t { run, evaluate, check, finish } kind = Kind::finish;
  std::uint32_t steps = 0;  // run only, at least 1
};

// One line: "run N", "evaluate", "check" or "finish". The error says what is allowed.
Result<Command> parse_command(std::string_view line);

// Lines from a file descriptor, of which a piece may come at a time.
class CommandReader {
 public:
  explicit CommandReader(int fd) : fd_(fd) {}

  // Reads what is there; to be called when the descriptor is readable. Adds whole lines as commands; what is
  // no command is logged and left out. The end of the file means finish.
  void read(std::deque<Command>& commands);
  bool ended() const { return ended_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string text_;
  bool ended_ = false;
};

}  // namespace gradlane::train
