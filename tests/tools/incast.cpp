// SPDX-License-Identifier: Apache-2.0
// Many-to-one traffic for tests and benchmarks: a receiver tells all its senders at once to send a block, and
// measures how long it takes until all blocks are there.
//   gl-incast receive PORT FLOWS BYTES BATCHES [PAUSE_MS]   one JSON object per batch, then {"done": ...}
//   gl-incast send ADDRESS PORT FLOWS [CONGESTION] [PRIORITY]
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/fd.hpp"

using gradlane::Fd;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kTimeoutMs = 20000;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "gl-incast: cannot %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

struct Flow {
  Fd fd;
  std::uint64_t left = 0;
};

void watch(int epoll, Flow& flow, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &flow;
  if (epoll_ctl(epoll, operation, flow.fd.get(), &event) != 0) fail("watch a socket");
}

int receive(int port, int count, std::uint64_t bytes, int batches, int pause_ms) {
  const Fd listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1, no = 0;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fail("bind");
  if (listen(listener.get(), count) != 0) fail("listen");
  std::puts("{\"listening\":true}");
  std::fflush(stdout);

  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::vector<Flow> flows(static_cast<std::size_t>(count));
  for (auto& flow : flows) {
    pollfd waiting{listener.get(), POLLIN, 0};
    if (poll(&waiting, 1, kTimeoutMs) != 1) fail("wait for senders");
    flow.fd.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!flow.fd) fail("accept");
    setsockopt(flow.fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    watch(epoll.get(), flow, EPOLLIN, EPOLL_CTL_ADD);
  }
  std::vector<char> buffer(1 << 20);
  std::vector<epoll_event> events(256);
  for (int batch = 0; batch < batches; batch++) {
    if (pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    const auto begin = Clock::now();
    double slowest = 0, sum = 0;
    for (auto& flow : flows) {
      flow.left = bytes;
      if (::send(flow.fd.get(), &bytes, sizeof(bytes), MSG_NOSIGNAL) != sizeof(bytes)) fail("ask a sender");
    }
    for (int busy = count; busy > 0;) {
      const int ready = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), kTimeoutMs);
      if (ready <= 0) fail("wait for a block");
      for (int i = 0; i < ready; i++) {
        auto& flow = *static_cast<Flow*>(events[static_cast<std::size_t>(i)].data.ptr);
        const ssize_t got = recv(flow.fd.get(), buffer.data(), buffer.size(), 0);
        if (got <= 0) fail("receive");
        flow.left -= static_cast<std::uint64_t>(got);
        if (flow.left != 0) continue;
        busy--;
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        sum += ms;
        slowest = std::max(slowest, ms);
      }
    }
    std::printf("{\"batch\":%d,\"ms\":%.3f,\"mean_ms\":%.3f,\"goodput_mbit_s\":%.2f}\n", batch, slowest,
                sum / count, static_cast<double>(bytes) * count * 8 / slowest / 1000);
    std::fflush(stdout);
  }
  std::puts("{\"done\":true}");
  return 0;
}

int send_blocks(const char* host, const char* port, int count, const char* congestion, int priority) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host, port, &hints, &found) != 0) fail("resolve the address");
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::vector<Flow> flows(static_cast<std::size_t>(count));
  for (auto& flow : flows) {
    flow.fd.reset(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (priority > 0) setsockopt(flow.fd.get(), SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
    if (congestion != nullptr && *congestion != 0 &&
        setsockopt(flow.fd.get(), IPPROTO_TCP, TCP_CONGESTION, congestion,
                   static_cast<socklen_t>(std::strlen(congestion))) != 0) {
      fail("set the congestion control");
    }
    if (connect(flow.fd.get(), found->ai_addr, found->ai_addrlen) != 0) fail("connect");
    const timeval never{};
    setsockopt(flow.fd.get(), SOL_SOCKET, SO_SNDTIMEO, &never, sizeof(never));
    watch(epoll.get(), flow, EPOLLIN, EPOLL_CTL_ADD);
  }
  freeaddrinfo(found);
  std::vector<char> block(1 << 16, 'x');
  std::vector<epoll_event> events(256);
  for (;;) {
    const int ready = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; i++) {
      auto& flow = *static_cast<Flow*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (flow.left == 0) {
        std::uint64_t wanted = 0;
        if (recv(flow.fd.get(), &wanted, sizeof(wanted), MSG_WAITALL) != sizeof(wanted)) return 0;
        flow.left = wanted;
      }
      const ssize_t sent =
          ::send(flow.fd.get(), block.data(), std::min<std::uint64_t>(flow.left, block.size()),
                 MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) flow.left -= static_cast<std::uint64_t>(sent);
      if (sent < 0 && errno != EAGAIN) return 0;
      watch(epoll.get(), flow, flow.left != 0 ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  const auto number = [&](int index, long fallback) {
    return count > index ? std::strtol(arguments[index], nullptr, 10) : fallback;
  };
  if (mode == "receive" && count >= 6) {
    return receive(static_cast<int>(number(2, 0)), static_cast<int>(number(3, 0)),
                   static_cast<std::uint64_t>(number(4, 0)), static_cast<int>(number(5, 0)),
                   static_cast<int>(number(6, 0)));
  }
  if (mode == "send" && count >= 5) {
    return send_blocks(arguments[2], arguments[3], static_cast<int>(number(4, 0)),
                       count > 5 ? arguments[5] : nullptr, static_cast<int>(number(6, 0)));
  }
  std::fprintf(stderr,
               "usage: gl-incast receive PORT FLOWS BYTES BATCHES [PAUSE_MS]\n"
               "       gl-incast send ADDRESS PORT FLOWS [CONGESTION] [PRIORITY]\n");
  return 2;
}
