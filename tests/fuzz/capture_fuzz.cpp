// SPDX-License-Identifier: Apache-2.0
// links: gl_lab_pure
// Any bytes as captured frames, each with two bytes of length before it: nothing is counted that was not
// there.
#include <cstdlib>

#include "lab/tally.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace gradlane::lab;
  Tally tally({Mac{}}, 1500, 0);
  std::uint64_t wire = 0, counted = 0;
  std::int64_t time = 0;
  for (std::size_t at = 0; at + 2 < size;) {
    const std::size_t length = std::min<std::size_t>(data[at], size - at - 2);
    // What was on the wire may be more than what was captured.
    const auto wire_bytes = static_cast<std::uint32_t>(length + data[at + 1] * 256U);
    const std::vector<std::uint8_t> frame(data + at + 2, data + at + 2 + length);
    if (length % 16 == 1) tally.mark("m", time);
    tally.add(frame, wire_bytes, ++time);
    wire += wire_bytes;
    at += 2 + length;
  }
  for (const auto& period : tally.finish(++time)) {
    for (const auto& count : period.counts) {
      counted += count.payload_bytes + count.retransmitted_bytes;
      if (count.packets == 0 || count.last_ns < count.first_ns) std::abort();
    }
  }
  if (counted > wire) std::abort();
  return 0;
}
