// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/fd.hpp"
#include "tools/incast.hpp"

namespace gradlane::incast {

void fail(const char* what) {
  std::fprintf(stderr, "gl-incast: cannot %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void watch(int epoll, int descriptor, void* data, unsigned events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = data;
  if (epoll_ctl(epoll, operation, descriptor, &event) != 0) fail("watch a socket");
}

namespace {

using Clock = std::chrono::steady_clock;

struct Flow {
  Fd fd;
  std::uint64_t left = 0;
  Clock::time_point asked;    // when the block was asked for
  std::uint64_t written = 0;  // of the block
};

void connect_all(const Sender& settings, int epoll, std::vector<Flow>& flows) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(settings.address.c_str(), settings.port.c_str(), &hints, &found) != 0) {
    fail("resolve the address");
  }
  for (auto& flow : flows) {
    flow.fd.reset(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!flow.fd) fail("open a socket");
    const int descriptor = flow.fd.get();
    if (settings.priority > 0) {
      setsockopt(descriptor, SOL_SOCKET, SO_PRIORITY, &settings.priority, sizeof(settings.priority));
    }
    if (!settings.congestion.empty() &&
        setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, settings.congestion.c_str(),
                   static_cast<socklen_t>(settings.congestion.size())) != 0) {
      fail("set the congestion control");
    }
    if (settings.pacing_rate > 0 && setsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE,
                                               &settings.pacing_rate, sizeof(settings.pacing_rate)) != 0) {
      fail("limit the pacing rate");
    }
    if (connect(descriptor, found->ai_addr, found->ai_addrlen) != 0) fail("connect");
    watch(epoll, descriptor, &flow, EPOLLIN, EPOLL_CTL_ADD);
  }
  freeaddrinfo(found);
}

// Returns false when the receiver has closed the connection.
bool read_order(Flow& flow) {
  std::uint64_t wanted = 0;
  if (recv(flow.fd.get(), &wanted, sizeof(wanted), MSG_WAITALL) != sizeof(wanted)) return false;
  flow.left = wanted;
  flow.written = 0;
  flow.asked = Clock::now();
  return true;
}

bool write_some(Flow& flow, std::uint64_t most) {
  static const std::vector<char> block(1 << 16, 'x');
  const std::uint64_t now = std::min<std::uint64_t>({flow.left, block.size(), most});
  const ssize_t sent = ::send(flow.fd.get(), block.data(), now, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) {
    flow.left -= static_cast<std::uint64_t>(sent);
    flow.written += static_cast<std::uint64_t>(sent);
  }
  return sent >= 0 || errno == EAGAIN;
}

// Bytes that a flow may write now: in chunks of one segment.
std::uint64_t due(const Flow& flow, std::uint64_t write_rate) {
  constexpr std::uint64_t kChunk = 1448;
  const double seconds = std::chrono::duration<double>(Clock::now() - flow.asked).count();
  const auto allowed = static_cast<std::uint64_t>(seconds * static_cast<double>(write_rate)) + kChunk;
  return allowed > flow.written ? (allowed - flow.written) / kChunk * kChunk : 0;
}

// Programs that write slowly: wakes up every millisecond.
int run_limited(const Sender& settings, int epoll, std::vector<Flow>& flows) {
  std::vector<epoll_event> events(256);
  for (;;) {
    const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 1);
    for (int i = 0; i < ready; i++) {
      auto& flow = *static_cast<Flow*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!read_order(flow)) return 0;
    }
    for (auto& flow : flows) {
      const std::uint64_t now = flow.left != 0 ? due(flow, settings.write_rate) : 0;
      if (now > 0 && !write_some(flow, now)) return 0;
    }
  }
}

}  // namespace

int run(const Sender& settings) {
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::vector<Flow> flows(static_cast<std::size_t>(settings.flows));
  connect_all(settings, epoll.get(), flows);
  if (settings.write_rate > 0) return run_limited(settings, epoll.get(), flows);
  std::vector<epoll_event> events(256);
  for (;;) {
    const int ready = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; i++) {
      auto& flow = *static_cast<Flow*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (flow.left == 0 && !read_order(flow)) return 0;
      if (!write_some(flow, UINT64_MAX)) return 0;
      watch(epoll.get(), flow.fd.get(), &flow, flow.left != 0 ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
  }
}

}  // namespace gradlane::incast
