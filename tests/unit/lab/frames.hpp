// SPDX-License-Identifier: Apache-2.0
// Frames for the tests of the capture.
#pragma once

#include <cstdint>
#include <vector>

namespace gradlane::lab {

struct TcpFrame {
  std::uint8_t dscp = 0, ecn = 0;
  std::uint32_t sequence = 0;
  std::uint16_t payload = 0;
  bool syn = false;
  std::uint8_t source_mac = 1;  // its last byte
};

// The bytes of an Ethernet frame: port 5000 to port 80.
inline std::vector<std::uint8_t> tcp_frame(int ip_version, const TcpFrame& wanted) {
  std::vector<std::uint8_t> bytes = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, wanted.source_mac};
  const auto put16 = [&](unsigned value) {
    bytes.push_back(static_cast<std::uint8_t>(value >> 8));
    bytes.push_back(static_cast<std::uint8_t>(value));
  };
  const unsigned traffic_class = wanted.dscp << 2 | wanted.ecn;
  if (ip_version == 4) {
    put16(0x0800);
    put16(0x4500 | traffic_class);
    put16(40U + wanted.payload);
    put16(0);
    put16(0);
    put16(64 << 8 | 6);
    put16(0);
    for (const unsigned last : {1, 2}) {
      put16(0x0a4d);
      put16(last);
    }
  } else {
    put16(0x86dd);
    put16(0x6000 | traffic_class << 4);
    put16(0);
    put16(20U + wanted.payload);
    put16(6 << 8 | 64);
    for (const unsigned last : {1, 2}) {
      put16(0xfd77);
      for (int i = 0; i < 6; ++i) put16(0);
      put16(last);
    }
  }
  put16(5000);
  put16(80);
  put16(wanted.sequence >> 16);
  put16(wanted.sequence & 0xffff);
  put16(0);
  put16(0);
  put16(0x5010 | (wanted.syn ? 2 : 0));
  put16(1000);
  put16(0);
  put16(0);
  bytes.insert(bytes.end(), wanted.payload, 0);
  return bytes;
}

}  // namespace gradlane::lab
