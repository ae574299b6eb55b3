// SPDX-License-Identifier: Apache-2.0
#include "sync/introduce.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradlane::train {

namespace {

constexpr auto kRetryEvery = std::chrono::milliseconds(200);
constexpr auto kNoticeEvery = std::chrono::seconds(2);
// poll() counts in an int; the limit itself is looked at afterwards.
constexpr std::int64_t kLongestPoll = 1'000'000;
constexpr auto kAnswerLimit = std::chrono::seconds(10);

// Takes the one message that answers a question.
class AnswerReceiver final : public Receiver {
 public:
  Result<std::span<std::byte>> place(Connection& /*connection*/, const Header& header) override {
    if (answer_ || (header.type != MessageType::setup && header.type != MessageType::refuse))
      return make_error("the peer sent " + describe(header.type) + " where its setup should be");
    payload_.resize(header.bytes);
    return std::span<std::byte>(payload_);
  }
  Status taken(Connection& /*connection*/, const Header& header,
               std::span<const std::byte> payload) override {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (header.type == MessageType::refuse)
      answer_ = make_error("the server refuses: " + text);
    else
      answer_ = setup_from_json(text);
    return {};
  }
  const std::optional<Result<TrainingSetup>>& answer() const { return answer_; }

 private:
  std::vector<std::byte> payload_;
  std::optional<Result<TrainingSetup>> answer_;
};

// Whether it may help to try again later.
bool transient(int code) {
  return code == ECONNREFUSED || code == EHOSTUNREACH || code == ENETUNREACH || code == ETIMEDOUT ||
         code == ECONNRESET || code == EADDRNOTAVAIL;
}

// One attempt; the error's code is the one of connect().
Result<Fd> try_connect(const Address& server, const SocketOptions& options, Clock::time_point until,
                       Patience& patience) {
  auto fd = make_socket(server, options);
  if (!fd) return fd;
  const auto failed = [&server](int code) { return system_error("connect to", server.text(), code); };
  if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&server.storage), server.length) == 0) return fd;
  if (errno != EINPROGRESS) return failed(errno);
  const auto ready = patience.wait(fd->get(), POLLOUT, until);
  if (!ready) return ready.error();
  if (!*ready) return failed(ETIMEDOUT);
  int code = 0;
  socklen_t length = sizeof code;
  if (::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &code, &length) != 0) code = errno;
  if (code != 0) return failed(code);
  return fd;
}

}  // namespace

Result<bool> Patience::wait(int fd, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    // A negative descriptor is ignored by poll().
    std::array<pollfd, 2> fds = {pollfd{.fd = signal_fd_, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = fd, .events = events, .revents = 0}};
    const int count =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongestPoll)));
    if (count < 0 && errno != EINTR) return system_error("wait for", "a connection", errno);
    if (count > 0 && fds[0].revents != 0) {
      signal_ = take_signal(signal_fd_);
      if (signal_.number != 0) return Error{std::string("ended by ") + signal_.name, EINTR};
    }
    if (count > 0 && fds[1].revents != 0) return true;
    if (Clock::now() >= until) return false;
  }
}

Status Patience::pass(Clock::time_point until) {
  const auto passed = wait(-1, 0, until);
  return passed ? Status{} : Status{passed.error()};
}

Result<Fd> reach(const Address& server, const SocketOptions& options, std::chrono::seconds limit,
                 Patience& patience) {
  const auto begin = Clock::now();
  auto notice_at = begin + kNoticeEvery;
  for (;;) {
    auto fd = try_connect(server, options, begin + limit, patience);
    if (fd || patience.signal().number != 0 || !transient(fd.error().code)) return fd;
    const auto now = Clock::now();
    if (now >= begin + limit) {
      return make_error("no server answers at " + server.text() + " for " + std::to_string(limit.count()) +
                        " s (" + std::strerror(fd.error().code) +
                        "): start `gradlane-train server` there first, or correct --connect");
    }
    if (now >= notice_at) {
      spdlog::info("waiting for a server at {}", server.text());
      notice_at = now + kNoticeEvery;
    }
    if (Status status = patience.pass(std::min(now + kRetryEvery, begin + limit)); !status)
      return status.error();
  }
}

Result<TrainingSetup> ask_setup(const Address& server, std::uint32_t rank, std::chrono::seconds limit,
                                Patience& patience) {
  auto fd = reach(server, {}, limit, patience);
  if (!fd) return fd.error();
  Connection connection(std::move(*fd), 0, 0);
  connection.send({.type = MessageType::ask}, encode_rank(rank));
  if (Status status = connection.flush(); !status) return status.error();
  AnswerReceiver receiver;
  const auto until = Clock::now() + kAnswerLimit;
  while (!receiver.answer()) {
    const auto ready = patience.wait(connection.fd(), POLLIN, until);
    if (!ready) return ready.error();
    if (!*ready) {
      return make_error("whoever listens at " + server.text() + " did not answer for " +
                        std::to_string(kAnswerLimit.count()) + " s: is it a gradlane-train server?");
    }
    const auto state = connection.read(receiver);
    if (receiver.answer()) break;
    if (!state) return make_error("no setup from " + server.text() + ": " + state.error().message);
    if (*state == ReadState::ended) {
      return make_error(server.text() +
                        " closed the connection without an answer: is it a gradlane-train server?");
    }
  }
  return *receiver.answer();
}

}  // namespace gradlane::train
