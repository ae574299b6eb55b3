// SPDX-License-Identifier: Apache-2.0
#include "packet.hpp"

#include <cstdio>

namespace gradlane::test {

namespace {

void put16(Packet& packet, unsigned value) {
  packet.push_back(static_cast<std::uint8_t>(value >> 8));
  packet.push_back(static_cast<std::uint8_t>(value));
}

std::uint16_t header_sum(const std::uint8_t* header, std::size_t length) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < length; i += 2)
    sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

std::size_t network_offset(const PacketParts& parts) { return 14 + 4 * parts.vlans.size(); }

Packet build_packet(const PacketParts& parts) {
  Packet packet(12, 0x02);
  for (const auto type : parts.vlans) {
    put16(packet, type);
    put16(packet, 0x0064);
  }
  put16(packet, parts.version == 4 ? 0x0800 : parts.version == 6 ? 0x86dd : 0x0806);
  const std::size_t transport = 20 + parts.payload;
  if (parts.version == 4) {
    const std::size_t start = packet.size();
    const std::size_t header = 20 + 4 * static_cast<std::size_t>(parts.option_words);
    packet.push_back(static_cast<std::uint8_t>(0x40 | header / 4));
    packet.push_back(parts.traffic_class);
    put16(packet, static_cast<unsigned>(header + transport));
    for (const std::uint8_t byte : {0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1}) {
      packet.push_back(byte);
    }
    packet.resize(start + header, 1);
    const auto sum = static_cast<std::uint16_t>(~header_sum(&packet[start], header));
    packet[start + 10] = static_cast<std::uint8_t>(sum >> 8);
    packet[start + 11] = static_cast<std::uint8_t>(sum);
  } else if (parts.version == 6) {
    packet.push_back(static_cast<std::uint8_t>(0x60 | parts.traffic_class >> 4));
    packet.push_back(static_cast<std::uint8_t>(parts.traffic_class << 4 | parts.flow_label >> 16));
    put16(packet, parts.flow_label & 0xffff);
    put16(packet, static_cast<unsigned>(transport));
    packet.push_back(6);
    packet.push_back(64);
    packet.resize(packet.size() + 32, 0xfd);
  }
  packet.resize(packet.size() + transport, 0xab);
  return packet;
}

std::uint8_t traffic_class(const Packet& packet, const PacketParts& parts) {
  const std::uint8_t* header = &packet[network_offset(parts)];
  if (parts.version == 4) return header[1];
  return static_cast<std::uint8_t>(header[0] << 4 | header[1] >> 4);
}

bool checksum_right(const Packet& packet, const PacketParts& parts) {
  if (parts.version != 4) return true;
  const std::uint8_t* header = &packet[network_offset(parts)];
  return header_sum(header, static_cast<std::size_t>(header[0] & 15) * 4) == 0xffff;
}

std::string to_text(const Packet& packet) {
  std::string text;
  for (const auto byte : packet) {
    char pair[3];
    std::snprintf(pair, sizeof(pair), "%02x", byte);
    text += pair;
  }
  return text;
}

}  // namespace gradlane::test
