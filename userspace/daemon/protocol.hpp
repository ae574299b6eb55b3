// SPDX-License-Identifier: Apache-2.0
// The control protocol between gradlane and gradlaned, without its transport: one JSON object per line each
// way. docs/protocol.md is its description.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "gradlane/abi/lane.h"

namespace gradlane {

inline constexpr int protocol_version = 1;
// The longest request, without its newline.
inline constexpr std::size_t longest_request = 64 << 10;

enum class Command {
  status,  // what the instance is and does
  config,  // the effective configuration
  job,     // the default lane of a job
  stop,    // detach everything and end
};

struct Request {
  Command command = Command::status;
  std::string job;          // of Command::job: a valid name
  gl_lane lane = GL_LANES;  // of Command::job
};

// Parses one line without its newline. Members that it does not know are ignored, so that newer clients may
// send more; another version, an unknown command or a wrong argument is an error.
Result<Request> parse_request(std::string_view line);
// The line of a request, with its newline.
std::string format_request(const Request& request);

// The line of an answer, with its newline: the result, or the error's sentence.
std::string format_answer(const Result<nlohmann::json>& result);
// The result in the line of an answer; the daemon's error, or that it is no answer.
Result<nlohmann::json> parse_answer(std::string_view line);

}  // namespace gradlane
