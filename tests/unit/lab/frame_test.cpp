// SPDX-License-Identifier: Apache-2.0
#include "lab/frame.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "frames.hpp"

namespace gradlane::lab {
namespace {

TEST(Frame, ReadsTcpOverIpv4) {
  const auto bytes = tcp_frame(4, {.dscp = 36, .ecn = 2, .sequence = 1000, .payload = 100});
  const auto frame = parse_frame(bytes, 154);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->ip_version, 4);
  EXPECT_EQ(frame->dscp, 36);
  EXPECT_EQ(frame->ecn, 2);
  EXPECT_EQ(frame->source_port, 5000);
  EXPECT_EQ(frame->destination_port, 80);
  EXPECT_EQ(frame->sequence, 1000U);
  EXPECT_EQ(frame->header_bytes, 54U);
  EXPECT_EQ(frame->payload_bytes, 100U);
  EXPECT_EQ(frame->source_mac, (Mac{2, 0, 0, 0, 0, 1}));
}

TEST(Frame, ReadsTcpOverIpv6) {
  const auto bytes = tcp_frame(6, {.dscp = 22, .ecn = 3, .sequence = 7, .payload = 10});
  const auto frame = parse_frame(bytes, 84);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->ip_version, 6);
  EXPECT_EQ(frame->dscp, 22);
  EXPECT_EQ(frame->ecn, 3);
  EXPECT_EQ(frame->header_bytes, 74U);
  EXPECT_EQ(frame->payload_bytes, 10U);
}

TEST(Frame, SkipsVlanTags) {
  auto bytes = tcp_frame(4, {.dscp = 14, .payload = 10});
  const std::vector<std::uint8_t> tags = {0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2};
  bytes.insert(bytes.begin() + 12, tags.begin(), tags.end());
  const auto frame = parse_frame(bytes, 72);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->dscp, 14);
  EXPECT_EQ(frame->header_bytes, 62U);
}

TEST(Frame, DoesNotCountPadding) {
  const auto frame = parse_frame(tcp_frame(4, {.payload = 0}), 60);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload_bytes, 0U);
}

TEST(Frame, SynTakesASequenceNumber) {
  const auto frame = parse_frame(tcp_frame(4, {.sequence = 0xffffffff, .syn = true}), 54);
  ASSERT_TRUE(frame);
  EXPECT_TRUE(frame->starts_connection);
  EXPECT_EQ(frame->sequence, 0U);
}

TEST(Frame, LaterFragmentsHaveNoPorts) {
  auto bytes = tcp_frame(4, {.payload = 100});
  bytes[14 + 7] = 10;  // its offset
  const auto frame = parse_frame(bytes, 154);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->source_port, 0);
  EXPECT_FALSE(frame->has_sequence);
}

TEST(Frame, NoLengthOfCaptureGoesBeyondTheBytes) {
  for (const int version : {4, 6}) {
    const auto whole = tcp_frame(version, {.dscp = 36, .payload = 100});
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      // A vector of its own, so that a sanitizer sees any byte read behind it.
      const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const auto frame = parse_frame(cut, static_cast<std::uint32_t>(whole.size()));
      if (!frame) continue;
      EXPECT_EQ(frame->dscp, 36);
      EXPECT_LE(frame->header_bytes + frame->payload_bytes, whole.size());
    }
  }
}

TEST(Frame, WhatIsNotIpIsNothing) {
  std::vector<std::uint8_t> arp(60, 0);
  arp[12] = 0x08;
  arp[13] = 0x06;
  EXPECT_FALSE(parse_frame(arp, 60));
}

}  // namespace
}  // namespace gradlane::lab
