// SPDX-License-Identifier: Apache-2.0
// links: gl_daemon
// Any bytes as a line of the control protocol: an error with a sentence, or a request that survives its own
// format; as an answer, no crash.
#include <cstdlib>
#include <string_view>

#include "daemon/protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  static_cast<void>(gradlane::parse_answer(line));
  const auto request = gradlane::parse_request(line);
  if (!request) {
    if (request.error().message.empty()) std::abort();
    return 0;
  }
  const std::string formatted = gradlane::format_request(*request);
  const auto again = gradlane::parse_request(std::string_view(formatted).substr(0, formatted.size() - 1));
  if (!again || again->command != request->command || again->job != request->job ||
      again->lane != request->lane) {
    std::abort();
  }
  return 0;
}
