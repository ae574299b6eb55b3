// SPDX-License-Identifier: Apache-2.0
#include "sync/guest.hpp"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gradlane::train {

namespace {

constexpr auto kJoinLimit = std::chrono::seconds(10);
constexpr auto kLeaveLimit = std::chrono::seconds(2);

std::vector<std::byte> text_bytes(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace

Status GuestBook::accept_from(int listener) {
  for (;;) {
    Fd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return {};
      return system_error("accept", "a connection", errno);
    }
    const int number = fd.get();
    const std::uint64_t key = next_key_++;
    if (Status status = poller_.watch(number, key); !status) return status;
    auto guest = std::make_unique<Guest>(key, std::move(fd));
    guest->limit = Clock::now() + kJoinLimit;
    guests_.emplace(key, std::move(guest));
  }
}

Guest* GuestBook::find(std::uint64_t key) {
  const auto found = guests_.find(key);
  return found == guests_.end() ? nullptr : found->second.get();
}

void GuestBook::refuse(Guest& guest, const std::string& sentence) {
  guest.connection.send({.type = MessageType::refuse}, text_bytes(sentence));
  guest.leaving = true;
  // Not closed right here: whoever refuses a guest may be about to read on from it.
  const bool gone = !guest.connection.flush();
  guest.limit = Clock::now() + (gone ? Clock::duration::zero() : Clock::duration(kLeaveLimit));
  if (!gone && !guest.connection.pending()) ::shutdown(guest.connection.fd(), SHUT_WR);
}

void GuestBook::close(Guest& guest) { guests_.erase(guest.key); }

Status GuestBook::want_write(Guest& guest, bool wanted) {
  if (guest.writable_watched == wanted) return {};
  guest.writable_watched = wanted;
  return poller_.watch_writable(guest.connection.fd(), guest.key, wanted);
}

void GuestBook::read_off(Guest& guest) {
  std::array<char, 65536> scratch;
  const ssize_t count = ::read(guest.connection.fd(), scratch.data(), scratch.size());
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close(guest);
}

void GuestBook::close_late(Clock::time_point now) {
  for (auto it = guests_.begin(); it != guests_.end();) {
    const Guest& guest = *it->second;
    const bool late = guest.limit && *guest.limit <= now;
    if (late && !guest.leaving)
      spdlog::warn("{} was disconnected: it did not say in time which worker it is",
                   guest.connection.remote().text());
    it = late ? guests_.erase(it) : std::next(it);
  }
}

std::optional<Clock::time_point> GuestBook::next_limit() const {
  std::optional<Clock::time_point> first;
  for (const auto& [key, guest] : guests_) {
    if (guest->limit && (!first || *guest->limit < *first)) first = guest->limit;
  }
  return first;
}

void GuestBook::part(Clock::time_point until) {
  std::erase_if(guests_, [](const auto& entry) { return !entry.second->rank; });
  for (auto& [key, guest] : guests_) guest->leaving = true;
  while (!guests_.empty() && Clock::now() < until) {
    std::vector<std::uint64_t> broken;
    for (auto& [key, guest] : guests_) {
      if (!guest->connection.flush() || !want_write(*guest, guest->connection.pending()))
        broken.push_back(key);
      else if (!guest->connection.pending())
        ::shutdown(guest->connection.fd(), SHUT_WR);
    }
    for (const std::uint64_t key : broken) guests_.erase(key);
    const auto events = poller_.wait(until);
    if (!events) break;
    for (const PollEvent& event : *events) {
      if (Guest* guest = find(event.key); guest != nullptr && event.readable) read_off(*guest);
    }
  }
  guests_.clear();
}

void GuestBook::for_each(const std::function<void(Guest&)>& action) {
  for (auto& [key, guest] : guests_) action(*guest);
}

}  // namespace gradlane::train
