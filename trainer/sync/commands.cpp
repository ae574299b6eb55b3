// SPDX-License-Identifier: Apache-2.0
#include "sync/commands.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace gradlane::train {

namespace {

constexpr std::uint32_t kMostSteps = 1'000'000'000;
constexpr std::size_t kMostLine = 4096;

}  // namespace

Result<Command> parse_command(std::string_view line) {
  if (line == "evaluate") return Command{.kind = Command::Kind::evaluate};
  if (line == "check") return Command{.kind = Command::Kind::check};
  if (line == "finish") return Command{.kind = Command::Kind::finish};
  constexpr std::string_view run = "run ";
  if (line.starts_with(run)) {
    std::uint32_t steps = 0;
    const char* const end = line.data() + line.size();
    const auto [rest, code] = std::from_chars(line.data() + run.size(), end, steps);
    if (code == std::errc{} && rest == end && steps >= 1 && steps <= kMostSteps)
      return Command{.kind = Command::Kind::run, .steps = steps};
  }
  return make_error("\"" + std::string(line.substr(0, 80)) +
                    "\" is no command: write run N (1 to 1000000000), evaluate, check or finish");
}

void CommandReader::read(std::deque<Command>& commands) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count > 0) text_.append(buffer.data(), static_cast<std::size_t>(count));
  ended_ = count <= 0;
  if (ended_ && !text_.empty()) text_ += '\n';
  for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
    const std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    if (line.empty()) continue;
    if (auto command = parse_command(line))
      commands.push_back(*command);
    else
      spdlog::error("{}", command.error().message);
  }
  if (text_.size() > kMostLine) {
    spdlog::error("a command of more than {} characters was left out", kMostLine);
    text_.clear();
  }
  if (ended_) commands.push_back({.kind = Command::Kind::finish});
}

}  // namespace gradlane::train
