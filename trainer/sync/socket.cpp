// SPDX-License-Identifier: Apache-2.0
#include "sync/socket.hpp"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>

namespace gradlane::train {

namespace {

constexpr int kBacklog = 1024;
// Keepalive notices a vanished peer of an idle connection after 3 + 3 * 2 s, the user timeout one of a busy
// connection after 8 s.
constexpr int kKeepIdle = 3;
constexpr int kKeepInterval = 2;
constexpr int kKeepCount = 3;
constexpr int kUserTimeoutMs = 8000;

Status set_option(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof value) == 0) return {};
  return system_error("set the socket option", what, errno);
}

std::string available_congestion() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::string names;
  std::getline(file, names);
  return names.empty() ? "unknown (/proc is not readable)" : names;
}

Status set_congestion(int fd, const std::string& name) {
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0)
    return {};
  if (errno == EPERM) {
    return make_error("--congestion " + name +
                      " needs root unless net.ipv4.tcp_allowed_congestion_control lists it");
  }
  return make_error("this host has no congestion control \"" + name +
                    "\" for --congestion; available are: " + available_congestion());
}

using Lookup = int (*)(int, sockaddr*, socklen_t*);

Result<Address> address_of(int fd, Lookup lookup) {
  Address address;
  address.length = sizeof address.storage;
  if (lookup(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return system_error("look up", "the address of a connection", errno);
  return address;
}

}  // namespace

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
      ::inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof text);
    else
      ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  }
  return text;
}

std::uint16_t Address::port() const {
  // The port lies at the same place in both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string Address::text() const {
  const std::string name = host();
  const bool bracket = name.find(':') != std::string::npos;
  return (bracket ? "[" + name + "]" : name) + ":" + std::to_string(port());
}

Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto wrong = [text] {
    return make_error("\"" + std::string(text) +
                      "\" is no address with a port: write it like 192.0.2.1:7000 or [2001:db8::1]:7000");
  };
  if (colon == std::string_view::npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return wrong();
  std::uint16_t number = 0;
  const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || port.empty() || code != std::errc{} || end != port.data() + port.size()) return wrong();

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(std::string(host).c_str(), std::string(port).c_str(), &hints, &found);
  if (status != 0) {
    return make_error("cannot find the host \"" + std::string(host) + "\": " + ::gai_strerror(status) +
                      "; give its address instead");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  return address;
}

Result<Address> local_address(int fd) { return address_of(fd, &::getsockname); }
Result<Address> remote_address(int fd) { return address_of(fd, &::getpeername); }

Status set_options(int fd, const SocketOptions& options) {
  if (options.tag != 0) {
    if (Status status = set_option(fd, SOL_SOCKET, SO_PRIORITY, options.tag, "SO_PRIORITY"); !status)
      return status;
  }
  if (options.low_water != 0) {
    if (Status status = set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(options.low_water),
                                   "TCP_NOTSENT_LOWAT");
        !status)
      return status;
  }
  if (!options.congestion.empty()) {
    if (Status status = set_congestion(fd, options.congestion); !status) return status;
  }
  struct {
    int level, name, value;
    const char* what;
  } const always[] = {
      {IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"},
      {SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
      {IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle, "TCP_KEEPIDLE"},
      {IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval, "TCP_KEEPINTVL"},
      {IPPROTO_TCP, TCP_KEEPCNT, kKeepCount, "TCP_KEEPCNT"},
      {IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs, "TCP_USER_TIMEOUT"},
  };
  for (const auto& option : always) {
    if (Status status = set_option(fd, option.level, option.name, option.value, option.what); !status)
      return status;
  }
  return {};
}

Result<Fd> listen_on(const Address& address) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("make", "a socket", errno);
  if (Status status = set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !status)
    return status.error();
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return Error{
          "the port of " + address.text() +
              " is in use: choose another one with --listen, or end the program that has it (ss -tlnp)",
          EADDRINUSE};
    }
    if (errno == EADDRNOTAVAIL) {
      return Error{address.host() + " is no address of this host: choose one of `ip addr` for --listen",
                   EADDRNOTAVAIL};
    }
    return system_error("listen on", address.text(), errno);
  }
  return fd;
}

Result<Fd> make_socket(const Address& address, const SocketOptions& options) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("make", "a socket", errno);
  if (Status status = set_options(fd.get(), options); !status) return status.error();
  return fd;
}

SendBacklog send_backlog(int fd) {
  int outstanding = 0;
  int unsent = 0;
  if (::ioctl(fd, SIOCOUTQ, &outstanding) != 0 || ::ioctl(fd, SIOCOUTQNSD, &unsent) != 0) return {};
  return {.outstanding = static_cast<std::size_t>(outstanding), .unsent = static_cast<std::size_t>(unsent)};
}

PathEstimate path_estimate(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  // A connection that has not measured a round trip yet reports the greatest number.
  if (info.tcpi_delivery_rate == 0 || info.tcpi_min_rtt == UINT32_MAX) return {};
  return {.byte_s = info.tcpi_delivery_rate, .round_trip = std::chrono::microseconds(info.tcpi_min_rtt)};
}

}  // namespace gradlane::train
