// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/fd.hpp"
#include "tools/incast.hpp"

namespace gradlane::incast {
namespace {

using Clock = std::chrono::steady_clock;

struct Flow {
  Fd fd;
  std::uint64_t left = 0;
  double done_ms = 0;  // since the batch began
};

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Fd listen_on(const Receiver& settings) {
  Fd listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) fail("open a socket");
  const int yes = 1, no = 0;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(settings.port));
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fail("bind");
  if (listen(listener.get(), settings.flows) != 0) fail("listen");
  return listener;
}

void accept_all(int listener, int epoll, const Receiver& settings, std::vector<Flow>& flows) {
  const int yes = 1;
  for (auto& flow : flows) {
    pollfd waiting{listener, POLLIN, 0};
    if (poll(&waiting, 1, kTimeoutMs) != 1) fail("wait for senders");
    flow.fd.reset(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!flow.fd) fail("accept");
    setsockopt(flow.fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (settings.window_clamp > 0 && setsockopt(flow.fd.get(), IPPROTO_TCP, TCP_WINDOW_CLAMP,
                                                &settings.window_clamp, sizeof(settings.window_clamp)) != 0) {
      fail("clamp the window");
    }
    watch(epoll, flow.fd.get(), &flow, EPOLLIN, EPOLL_CTL_ADD);
  }
}

void ask(Flow& flow, std::uint64_t bytes) {
  flow.left = bytes;
  if (::send(flow.fd.get(), &bytes, sizeof(bytes), MSG_NOSIGNAL) != sizeof(bytes)) fail("ask a sender");
}

// Returns when all blocks are there.
void run_batch(std::vector<Flow>& flows, int epoll, std::uint64_t bytes, std::size_t at_a_time) {
  static std::vector<char> buffer(1 << 20);
  std::vector<epoll_event> events(256);
  const auto begin = Clock::now();
  std::size_t asked = 0;
  while (asked < at_a_time) ask(flows[asked++], bytes);
  for (std::size_t busy = flows.size(); busy > 0;) {
    const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), kTimeoutMs);
    if (ready <= 0) fail("wait for a block");
    for (int i = 0; i < ready; i++) {
      auto& flow = *static_cast<Flow*>(events[static_cast<std::size_t>(i)].data.ptr);
      const ssize_t got = recv(flow.fd.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) fail("receive");
      flow.left -= static_cast<std::uint64_t>(got);
      if (flow.left != 0) continue;
      busy--;
      flow.done_ms = ms_since(begin);
      if (asked < flows.size()) ask(flows[asked++], bytes);
    }
  }
}

void report(int batch, const std::vector<Flow>& flows, std::uint64_t bytes) {
  std::vector<double> times;
  double mean = 0, rates = 0, squares = 0, slowest_rate = 1e300;
  for (const auto& flow : flows) {
    const double rate = static_cast<double>(bytes) / flow.done_ms;
    times.push_back(flow.done_ms);
    mean += flow.done_ms;
    rates += rate;
    squares += rate * rate;
    slowest_rate = std::min(slowest_rate, rate);
  }
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(flows.size());
  const auto percentile = [&](double share) {
    return times[static_cast<std::size_t>(std::lround(share * (count - 1)))];
  };
  std::printf(
      "{\"batch\":%d,\"ms\":%.3f,\"mean_ms\":%.3f,\"goodput_mbit_s\":%.2f,\"flow_p50_ms\":%.3f,"
      "\"flow_p99_ms\":%.3f,\"slowest_to_mean\":%.4f,\"jain\":%.4f}\n",
      batch, times.back(), mean / count, static_cast<double>(bytes) * count * 8 / times.back() / 1000,
      percentile(0.5), percentile(0.99), slowest_rate * count / rates, rates * rates / (count * squares));
  std::fflush(stdout);
}

}  // namespace

int run(const Receiver& settings) {
  const Fd listener = listen_on(settings);
  std::puts("{\"listening\":true}");
  std::fflush(stdout);
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::vector<Flow> flows(static_cast<std::size_t>(settings.flows));
  accept_all(listener.get(), epoll.get(), settings, flows);
  const std::size_t at_a_time =
      settings.tokens > 0 ? std::min(flows.size(), static_cast<std::size_t>(settings.tokens)) : flows.size();
  const auto begin = Clock::now();
  for (int batch = 0; batch < settings.batches; batch++) {
    if (settings.seconds > 0 && batch > 1 && ms_since(begin) > settings.seconds * 1000) break;
    if (settings.pause_ms > 0 && batch % settings.pause_after == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(settings.pause_ms));
    }
    const std::uint64_t bytes = settings.bytes[static_cast<std::size_t>(batch) % settings.bytes.size()];
    run_batch(flows, epoll.get(), bytes, at_a_time);
    report(batch, flows, bytes);
  }
  std::puts("{\"done\":true}");
  std::fflush(stdout);
  if (settings.hold) {
    while (std::getchar() != EOF) {
    }
  }
  return 0;
}

}  // namespace gradlane::incast
