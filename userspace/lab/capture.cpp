// SPDX-License-Identifier: Apache-2.0
#include "lab/capture.hpp"

#include <net/if.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "core/fd.hpp"
#include "lab/lab.hpp"
#include "lab/netns.hpp"

namespace gradlane::lab {
namespace {

// All headers up to TCP's options, with VLAN tags and a few IPv6 extension headers.
constexpr int header_bytes = 160;
// Half a second of the smallest frames at 1 Gbit/s.
constexpr int ring_bytes = 16 << 20;
// How late the kernel may hand packets over.
constexpr int block_timeout_ms = 50;

std::atomic<bool> stopped = false;

void stop(int) { stopped = true; }

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Close {
  void operator()(pcap_t* handle) const { pcap_close(handle); }
};
using Handle = std::unique_ptr<pcap_t, Close>;

Result<Handle> open_capture(const std::string& interface) {
  std::array<char, PCAP_ERRBUF_SIZE> reason{};
  Handle handle(pcap_create(interface.c_str(), reason.data()));
  if (!handle) return make_error("cannot capture at " + interface + ": " + reason.data());
  pcap_set_snaplen(handle.get(), header_bytes);
  pcap_set_buffer_size(handle.get(), ring_bytes);
  pcap_set_timeout(handle.get(), block_timeout_ms);
  pcap_set_tstamp_precision(handle.get(), PCAP_TSTAMP_PRECISION_NANO);
  if (pcap_activate(handle.get()) < 0 || pcap_setnonblock(handle.get(), 1, reason.data()) < 0) {
    return make_error("cannot capture at " + interface + ": " + pcap_geterr(handle.get()));
  }
  return handle;
}

Result<std::uint32_t> mtu_of(const std::string& interface) {
  const Fd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (!socket_fd || ioctl(socket_fd.get(), SIOCGIFMTU, &request) != 0) {
    return system_error("ask for the MTU of", interface, errno);
  }
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

std::vector<Mac> macs_behind(const Topology& topology, const Plan& plan, const Link& link) {
  const auto hosts = hosts_behind(topology, link);
  std::vector<Mac> macs;
  for (const auto& node : plan.nodes) {
    if (std::find(hosts.begin(), hosts.end(), node.name) == hosts.end()) continue;
    Mac mac{};
    std::sscanf(node.mac.c_str(), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
                &mac[4], &mac[5]);
    macs.push_back(mac);
  }
  return macs;
}

// The lines of standard input, as they come.
class Marks {
 public:
  // Reads what is there and enters each "mark NAME". False once it is closed.
  bool read(Tally& tally) {
    std::array<char, 4096> block{};
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    if (got == 0) return false;
    const std::int64_t time = now_ns();
    text_.append(block.data(), static_cast<std::size_t>(got));
    for (auto end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      if (text_.starts_with("mark ")) tally.mark(text_.substr(5, end - 5), time);
      text_.erase(0, end + 1);
    }
    return true;
  }

 private:
  std::string text_;
};

struct Sink {
  Tally& tally;
  // Packets from then on are not counted any more.
  std::int64_t end_ns = INT64_MAX;
};

void take(unsigned char* user, const pcap_pkthdr* header, const unsigned char* bytes) {
  auto& sink = *reinterpret_cast<Sink*>(user);
  // In nanosecond mode tv_usec holds nanoseconds.
  const std::int64_t time = header->ts.tv_sec * 1'000'000'000LL + header->ts.tv_usec;
  if (time < sink.end_ns) sink.tally.add({bytes, header->caplen}, header->len, time);
}

Status run(pcap_t* handle, const CaptureOptions& options, Sink& sink) {
  Marks marks;
  const auto started = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> drained;
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const bool over = options.seconds > 0 && now - started >= std::chrono::duration<double>(options.seconds);
    if (!drained && (stopped || over)) {
      sink.end_ns = now_ns();
      // The kernel still holds the packets of its last block.
      drained = now + std::chrono::milliseconds(3 * block_timeout_ms);
    }
    if (drained && now >= *drained) return {};
    std::array<pollfd, 2> waits{{{pcap_get_selectable_fd(handle), POLLIN, 0},
                                 {options.until_stdin_closes && !drained ? STDIN_FILENO : -1, POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), block_timeout_ms) < 0 && errno != EINTR) {
      return system_error("wait for", "packets", errno);
    }
    if (waits[1].revents != 0 && !marks.read(sink.tally)) stopped = true;
    if (pcap_dispatch(handle, -1, take, reinterpret_cast<unsigned char*>(&sink)) < 0) {
      return make_error(std::string("the capture broke off: ") + pcap_geterr(handle));
    }
  }
}

}  // namespace

Result<Capture> capture_link(const CaptureOptions& options) {
  const auto state = read_state(options.lab);
  if (!state) return state.error();
  const auto link = find_link(state->topology, options.link);
  if (!link) return link.error();
  const Plan plan = make_plan(state->topology, options.lab);
  const Port port = ports_of(plan, *link).second;
  if (Status entered = enter_namespace(port.name_space); !entered) return entered.error();

  struct sigaction action{};
  action.sa_handler = stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  const auto mtu = mtu_of(port.interface);
  if (!mtu) return mtu.error();
  const auto handle = open_capture(port.interface);
  if (!handle) return handle.error();
  Tally tally(macs_behind(state->topology, plan, *link), *mtu, now_ns());
  Sink sink{tally};
  std::fputs("ready\n", stderr);
  if (Status done = run(handle->get(), options, sink); !done) return done.error();

  pcap_stat statistics{};
  if (pcap_stats(handle->get(), &statistics) != 0) {
    return make_error(std::string("cannot tell what the capture has missed: ") + pcap_geterr(handle->get()));
  }
  return Capture{link->name, link->a, statistics.ps_drop, tally.finish(sink.end_ns)};
}

}  // namespace gradlane::lab
