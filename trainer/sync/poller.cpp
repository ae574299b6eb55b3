// SPDX-License-Identifier: Apache-2.0
#include "sync/poller.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace gradlane::train {

namespace {

constexpr std::size_t kEventsAtOnce = 128;

epoll_event event_for(std::uint64_t key, bool writable) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (writable ? EPOLLOUT : 0U);
  event.data.u64 = key;
  return event;
}

}  // namespace

Result<Poller> Poller::create() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) return system_error("make", "an epoll instance", errno);
  return Poller(std::move(fd));
}

Status Poller::watch(int fd, std::uint64_t key) {
  epoll_event event = event_for(key, false);
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return system_error("watch", "a file descriptor", errno);
}

Status Poller::watch_writable(int fd, std::uint64_t key, bool writable) {
  epoll_event event = event_for(key, writable);
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return {};
  return system_error("watch", "a file descriptor", errno);
}

void Poller::forget(int fd) { ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Result<std::span<const PollEvent>> Poller::wait(std::optional<Clock::time_point> until) {
  timespec limit{};
  if (until) {
    const auto left = std::max(Clock::duration::zero(), *until - Clock::now());
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    limit = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
  }
  std::array<epoll_event, kEventsAtOnce> raw{};
  const int count =
      ::epoll_pwait2(fd_.get(), raw.data(), static_cast<int>(raw.size()), until ? &limit : nullptr, nullptr);
  if (count < 0 && errno != EINTR) return system_error("wait for", "events", errno);
  events_.clear();
  for (int index = 0; index < count; ++index) {
    const epoll_event& event = raw[static_cast<std::size_t>(index)];
    events_.push_back({.key = event.data.u64,
                       .readable = (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
                       .writable = (event.events & EPOLLOUT) != 0});
  }
  return std::span<const PollEvent>(events_);
}

Result<Fd> catch_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  if (const int code = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); code != 0)
    return system_error("block", "signals", code);
  std::signal(SIGPIPE, SIG_IGN);
  Fd fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return system_error("catch", "signals", errno);
  return fd;
}

Signal take_signal(int fd) {
  signalfd_siginfo info{};
  if (::read(fd, &info, sizeof info) != sizeof info) return {};
  const int number = static_cast<int>(info.ssi_signo);
  return {.number = number, .name = number == SIGINT ? "SIGINT" : "SIGTERM"};
}

}  // namespace gradlane::train
