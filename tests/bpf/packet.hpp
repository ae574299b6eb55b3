// SPDX-License-Identifier: Apache-2.0
// Packets for tests, built from their parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradlane::test {

struct PacketParts {
  std::vector<std::uint16_t> vlans = {};  // EtherTypes of in-band tags: 0x8100, 0x88a8
  int version = 4;                        // 4, 6; 0: ARP
  std::uint8_t traffic_class = 0;         // DSCP and ECN
  int option_words = 0;                   // IPv4 options, in 32-bit words of no-operations
  std::uint32_t flow_label = 0x12345;
  std::size_t payload = 64;  // behind a TCP header
};

using Packet = std::vector<std::uint8_t>;

// An Ethernet frame with a right IPv4 header checksum.
Packet build_packet(const PacketParts& parts);
// Offset of the network header in a packet of these parts.
std::size_t network_offset(const PacketParts& parts);
// The traffic class (DSCP and ECN) that a packet of these parts carries now.
std::uint8_t traffic_class(const Packet& packet, const PacketParts& parts);
// Whether the IPv4 header checksum is right; true for others.
bool checksum_right(const Packet& packet, const PacketParts& parts);
// Hexadecimal, for messages.
std::string to_text(const Packet& packet);

}  // namespace gradlane::test
