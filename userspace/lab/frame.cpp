// SPDX-License-Identifier: Apache-2.0
#include "lab/frame.hpp"

#include <algorithm>

namespace gradlane::lab {
namespace {

constexpr std::size_t ethernet_bytes = 14, vlan_bytes = 4, ipv6_bytes = 40, tcp_bytes = 20, udp_bytes = 8;
constexpr std::uint16_t type_ipv4 = 0x0800, type_ipv6 = 0x86dd, type_vlan = 0x8100,
                        type_service_vlan = 0x88a8;
constexpr std::uint8_t protocol_tcp = 6, protocol_udp = 17;
// Extension headers of IPv6 that have their length in units of eight bytes.
constexpr std::uint8_t hop_by_hop = 0, routing = 43, fragment = 44, destination_options = 60;

using Bytes = std::span<const std::uint8_t>;

std::uint16_t read16(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

std::uint32_t read32(Bytes bytes, std::size_t at) {
  return static_cast<std::uint32_t>(read16(bytes, at)) << 16 | read16(bytes, at + 2);
}

// Where the transport's header starts, and how much of the packet there is from the IP header on.
struct Layers {
  std::size_t transport = 0;
  std::uint32_t ip_total = 0;
  bool first_fragment = true;
};

std::optional<Layers> parse_ipv4(Bytes ip, Frame& frame) {
  if (ip.size() < 20 || ip[0] >> 4 != 4) return std::nullopt;
  const std::size_t header = (ip[0] & 0xf) * 4U;
  if (header < 20) return std::nullopt;
  frame.ip_version = 4;
  frame.dscp = ip[1] >> 2;
  frame.ecn = ip[1] & 3;
  frame.protocol = ip[9];
  std::copy_n(ip.begin() + 12, 4, frame.source.begin());
  std::copy_n(ip.begin() + 16, 4, frame.destination.begin());
  return Layers{header, read16(ip, 2), (read16(ip, 6) & 0x1fff) == 0};
}

std::optional<Layers> parse_ipv6(Bytes ip, Frame& frame) {
  if (ip.size() < ipv6_bytes || ip[0] >> 4 != 6) return std::nullopt;
  const unsigned traffic_class = (read16(ip, 0) >> 4) & 0xff;
  frame.ip_version = 6;
  frame.dscp = static_cast<std::uint8_t>(traffic_class >> 2);
  frame.ecn = traffic_class & 3;
  std::copy_n(ip.begin() + 8, 16, frame.source.begin());
  std::copy_n(ip.begin() + 24, 16, frame.destination.begin());
  const std::uint32_t payload = read16(ip, 4);
  Layers layers{ipv6_bytes, payload == 0 ? 0 : payload + static_cast<std::uint32_t>(ipv6_bytes), true};
  std::uint8_t next = ip[6];
  while (next == hop_by_hop || next == routing || next == fragment || next == destination_options) {
    if (ip.size() < layers.transport + 8) break;
    if (next == fragment && (read16(ip, layers.transport + 2) & 0xfff8) != 0) layers.first_fragment = false;
    const std::size_t length = next == fragment ? 8 : (ip[layers.transport + 1] + 1U) * 8;
    next = ip[layers.transport];
    layers.transport += length;
  }
  frame.protocol = next;
  return layers;
}

// Reads ports and sequence number; returns how long the header is, 0 of another transport.
std::size_t parse_transport(Bytes transport, Frame& frame) {
  if (frame.protocol != protocol_tcp && frame.protocol != protocol_udp) return 0;
  if (transport.size() >= 4) {
    frame.source_port = read16(transport, 0);
    frame.destination_port = read16(transport, 2);
  }
  if (frame.protocol == protocol_udp) return udp_bytes;
  if (transport.size() < tcp_bytes) return tcp_bytes;
  constexpr std::uint8_t syn = 2;
  frame.starts_connection = (transport[13] & syn) != 0;
  // SYN itself takes the first number.
  frame.sequence = read32(transport, 4) + (frame.starts_connection ? 1 : 0);
  frame.has_sequence = true;
  return std::max<std::size_t>((transport[12] >> 4) * 4U, tcp_bytes);
}

}  // namespace

std::optional<Frame> parse_frame(Bytes bytes, std::uint32_t wire_bytes) {
  if (bytes.size() < ethernet_bytes) return std::nullopt;
  Frame frame;
  std::copy_n(bytes.begin() + 6, frame.source_mac.size(), frame.source_mac.begin());
  std::size_t start = ethernet_bytes;
  std::uint16_t type = read16(bytes, 12);
  for (int tags = 0; tags < 2 && (type == type_vlan || type == type_service_vlan); ++tags) {
    if (bytes.size() < start + vlan_bytes) return std::nullopt;
    type = read16(bytes, start + 2);
    start += vlan_bytes;
  }
  const Bytes ip = bytes.subspan(start);
  const auto layers = type == type_ipv4   ? parse_ipv4(ip, frame)
                      : type == type_ipv6 ? parse_ipv6(ip, frame)
                                          : std::nullopt;
  if (!layers) return std::nullopt;
  std::size_t header = layers->transport;
  if (layers->first_fragment) {
    header += parse_transport(ip.size() > layers->transport ? ip.subspan(layers->transport) : Bytes(), frame);
  }
  // Packets of more than 64 KB have no length in the header; and no header tells more than was on the wire.
  const std::uint32_t on_wire = wire_bytes > start ? wire_bytes - static_cast<std::uint32_t>(start) : 0;
  const std::uint32_t total = layers->ip_total == 0 ? on_wire : std::min(layers->ip_total, on_wire);
  header = std::min<std::size_t>(header, total);
  frame.header_bytes = static_cast<std::uint32_t>(start + header);
  frame.payload_bytes = total - static_cast<std::uint32_t>(header);
  return frame;
}

}  // namespace gradlane::lab
