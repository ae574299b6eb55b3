// SPDX-License-Identifier: Apache-2.0
#include "lab/tally.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "frames.hpp"

namespace gradlane::lab {
namespace {

constexpr std::uint32_t mtu = 1500;
const Mac end_mac = {2, 0, 0, 0, 0, 1};

void add(Tally& tally, const TcpFrame& wanted, std::int64_t time_ns) {
  const auto bytes = tcp_frame(4, wanted);
  tally.add(bytes, static_cast<std::uint32_t>(bytes.size()), time_ns);
}

TEST(SequenceSet, CountsEachByteOnce) {
  // Against a set of single bytes, over the wrap of the sequence numbers.
  std::mt19937 random(7);
  SequenceSet set;
  std::set<std::uint32_t> seen;
  std::uint32_t front = 0xffffff00;
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t length = random() % 40;
    const std::uint32_t start = front - random() % 60 + random() % 60;
    std::uint32_t fresh = 0;
    for (std::uint32_t byte = 0; byte < length; ++byte) fresh += seen.insert(start + byte).second ? 1 : 0;
    ASSERT_EQ(set.add(start, length), fresh) << i;
    front += random() % 8;
  }
}

TEST(SequenceSet, ForgetsWithANewConnection) {
  SequenceSet set;
  EXPECT_EQ(set.add(100, 50), 50U);
  EXPECT_EQ(set.add(100, 50), 0U);
  set.clear();
  EXPECT_EQ(set.add(100, 50), 50U);
}

TEST(Tally, TellsPayloadFromRetransmittedPayload) {
  Tally tally({end_mac}, mtu, 0);
  add(tally, {.sequence = 1000, .payload = 100}, 1);
  add(tally, {.sequence = 1200, .payload = 100}, 2);
  add(tally, {.sequence = 1050, .payload = 200}, 3);
  const auto periods = tally.finish(10);
  ASSERT_EQ(periods.size(), 1U);
  ASSERT_EQ(periods[0].counts.size(), 1U);
  const FlowCount& count = periods[0].counts[0];
  EXPECT_TRUE(count.flow.from_end);
  EXPECT_EQ(count.packets, 3U);
  EXPECT_EQ(count.payload_bytes, 300U);
  EXPECT_EQ(count.retransmitted_bytes, 100U);
  EXPECT_EQ(count.wire_bytes, 3 * 54U + 400U);
  EXPECT_EQ(count.first_ns, 1);
  EXPECT_EQ(count.last_ns, 3);
}

TEST(Tally, KeepsDirectionsAndDscpApart) {
  Tally tally({end_mac}, mtu, 0);
  add(tally, {.dscp = 36, .sequence = 0, .payload = 10}, 1);
  add(tally, {.dscp = 0, .sequence = 10, .payload = 20}, 2);
  add(tally, {.dscp = 36, .sequence = 0, .payload = 40, .source_mac = 2}, 3);
  const auto periods = tally.finish(10);
  ASSERT_EQ(periods[0].counts.size(), 3U);
  EXPECT_EQ(periods[0].counts[0].payload_bytes, 10U);
  EXPECT_EQ(periods[0].counts[1].payload_bytes, 20U);
  EXPECT_EQ(periods[0].counts[2].payload_bytes, 40U);
  EXPECT_FALSE(periods[0].counts[2].flow.from_end);
}

TEST(Tally, TakesASuperPacketAsItsSegments) {
  Tally tally({end_mac}, mtu, 0);
  add(tally, {.payload = 14600}, 1);
  const auto periods = tally.finish(10);
  EXPECT_EQ(periods[0].counts[0].packets, 10U);
  EXPECT_EQ(periods[0].counts[0].wire_bytes, 10 * 54U + 14600U);
}

TEST(Tally, PacketsBelongToThePeriodOfTheirTime) {
  Tally tally({end_mac}, mtu, 0);
  add(tally, {.sequence = 0, .payload = 10}, 1);
  // The mark is known before the packets that are older.
  tally.mark("first", 5);
  add(tally, {.sequence = 10, .payload = 20}, 4);
  add(tally, {.sequence = 30, .payload = 40}, 5);
  add(tally, {.sequence = 0, .payload = 10}, 6);
  tally.mark("second", 8);
  const auto periods = tally.finish(10);
  ASSERT_EQ(periods.size(), 3U);
  EXPECT_EQ(periods[0].counts[0].payload_bytes, 30U);
  EXPECT_EQ(periods[0].end_ns, 5);
  EXPECT_EQ(periods[1].name, "first");
  EXPECT_EQ(periods[1].counts[0].payload_bytes, 40U);
  // Seen in the period before.
  EXPECT_EQ(periods[1].counts[0].retransmitted_bytes, 10U);
  EXPECT_EQ(periods[2].name, "second");
  EXPECT_TRUE(periods[2].counts.empty());
  EXPECT_EQ(periods[2].end_ns, 10);
}

TEST(Tally, CountsWhatIsNotIp) {
  Tally tally({end_mac}, mtu, 0);
  const std::vector<std::uint8_t> arp(42, 0);
  tally.add(arp, 60, 1);
  const auto periods = tally.finish(10);
  EXPECT_EQ(periods[0].other_packets, 1U);
  EXPECT_EQ(periods[0].other_bytes, 60U);
}

}  // namespace
}  // namespace gradlane::lab
