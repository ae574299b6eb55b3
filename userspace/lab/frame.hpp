// SPDX-License-Identifier: Apache-2.0
// The headers of one captured Ethernet frame. Pure: reads whatever bytes it gets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace gradlane::lab {

using Mac = std::array<std::uint8_t, 6>;

// An IP packet, which may be a whole series of segments that the sender leaves to its interface to cut.
struct Frame {
  Mac source_mac{};
  std::uint8_t ip_version = 0;                           // 4 or 6
  std::array<std::uint8_t, 16> source{}, destination{};  // the first 4 bytes of IPv4
  std::uint8_t protocol = 0;                             // of the transport: 6 is TCP
  std::uint16_t source_port = 0, destination_port = 0;   // 0 without ports, and in later fragments
  std::uint8_t dscp = 0, ecn = 0;
  std::uint32_t header_bytes = 0;   // from Ethernet on, as far as each segment repeats them
  std::uint32_t payload_bytes = 0;  // behind the transport's header, without padding
  bool has_sequence = false;        // the two below hold: the TCP header is there
  std::uint32_t sequence = 0;       // of the first byte of payload
  bool starts_connection = false;   // SYN
};

// Reads a frame from its first captured bytes; wire_bytes is how long it was before it was cut. Up to two
// VLAN tags are skipped. Nothing if it is not IP or too short to tell.
std::optional<Frame> parse_frame(std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes);

}  // namespace gradlane::lab
