// SPDX-License-Identifier: Apache-2.0
// TCP sockets of the trainer: addresses, options, and what the kernel tells about them.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/fd.hpp"
#include "core/result.hpp"

namespace gradlane::train {

// An IPv4 or IPv6 address with its port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  // Without the port; an IPv4 address that came in over IPv6 is written as IPv4.
  std::string host() const;
  std::uint16_t port() const;
  // "192.0.2.1:7000", "[2001:db8::1]:7000"
  std::string text() const;
};

// "ADDRESS:PORT" or "[ADDRESS]:PORT"; a name instead of an address is looked up.
Result<Address> parse_address(std::string_view text);
Result<Address> local_address(int fd);
Result<Address> remote_address(int fd);

// What a data connection is given, before connect() by the worker, right after accept() by the server.
struct SocketOptions {
  std::uint8_t tag = 0;         // SO_PRIORITY, 0..6; 0: untouched
  std::string congestion;       // TCP_CONGESTION; empty: untouched
  std::uint32_t low_water = 0;  // TCP_NOTSENT_LOWAT in bytes; 0: untouched
};

// Also sets TCP_NODELAY, and keepalive and time limits such that a vanished peer is noticed within 10 s. If
// the congestion control cannot be had, the error says which can.
Status set_options(int fd, const SocketOptions& options);

// A listening socket, non-blocking. Port 0: any that is free.
Result<Fd> listen_on(const Address& address);
// A socket for connecting to address, non-blocking, with options set.
Result<Fd> make_socket(const Address& address, const SocketOptions& options);

// Bytes that the peer has not acknowledged yet, and of these the bytes that were not sent yet.
struct SendBacklog {
  std::size_t outstanding = 0;
  std::size_t unsent = 0;
};
SendBacklog send_backlog(int fd);

// The path of a connection as TCP measured it; both 0 while unknown.
struct PathEstimate {
  std::uint64_t byte_s = 0;
  std::chrono::microseconds round_trip{0};
};
PathEstimate path_estimate(int fd);

}  // namespace gradlane::train
