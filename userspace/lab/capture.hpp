// SPDX-License-Identifier: Apache-2.0
// Capturing at a switch port: what really was on the wire, seen by nobody whose work it proves.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "lab/tally.hpp"

namespace gradlane::lab {

struct CaptureOptions {
  std::string lab, link;
  double seconds = 0;               // how long; 0: until a signal
  bool until_stdin_closes = false;  // and reads lines "mark NAME" from there
};

struct Capture {
  std::string link;
  std::string end;                    // the host, or the switch A of a link A-B
  std::uint64_t dropped_packets = 0;  // that the capture itself was too slow for
  std::vector<Period> periods;
};

// Captures until the time is over, standard input closes, SIGINT or SIGTERM. Prints "ready" on standard error
// when it starts. Moves the calling process into the switch's network namespace.
Result<Capture> capture_link(const CaptureOptions& options);

}  // namespace gradlane::lab
