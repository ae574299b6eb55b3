// SPDX-License-Identifier: Apache-2.0
// The marker on packets of every shape, by BPF_PROG_TEST_RUN.
#include <bpf/bpf.h>
#include <gl_lane.skel.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <mark_trial.skel.h>

#include <numeric>
#include <random>

#include "bpf/map.hpp"
#include "bpf/skeleton.hpp"
#include "gradlane/abi/observe.h"
#include "packet.hpp"
#include "policy/lane_config.hpp"

namespace gradlane::test {
namespace {

struct Outcome {
  Packet packet;
  std::uint32_t priority = 0;
  int verdict = 0;
};

Outcome run(int program, const Packet& packet, std::uint32_t priority, std::uint32_t segments = 0) {
  Outcome outcome;
  outcome.packet.resize(packet.size() + 64);
  __sk_buff context{};
  context.priority = priority;
  context.gso_segs = segments;
  context.gso_size = segments != 0 ? 1448 : 0;
  __sk_buff context_out{};
  LIBBPF_OPTS(bpf_test_run_opts, options);
  options.data_in = packet.data();
  options.data_size_in = static_cast<__u32>(packet.size());
  options.data_out = outcome.packet.data();
  options.data_size_out = static_cast<__u32>(outcome.packet.size());
  options.ctx_in = &context;
  options.ctx_size_in = sizeof(context);
  options.ctx_out = &context_out;
  options.ctx_size_out = sizeof(context_out);
  EXPECT_EQ(bpf_prog_test_run_opts(program, &options), 0) << std::strerror(errno);
  outcome.packet.resize(options.data_size_out);
  outcome.priority = context_out.priority;
  outcome.verdict = static_cast<int>(options.retval);
  return outcome;
}

class Mark : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Skeleton<mark_trial_bpf>::open("mark_trial");
    ASSERT_TRUE(opened) << opened.error().message;
    trial_.emplace(std::move(*opened));
    auto loaded = trial_->load();
    ASSERT_TRUE(loaded) << loaded.error().message;
    set(make_lane_config(lanes_, false));
  }

  void set(const gl_lane_config& config) {
    ASSERT_TRUE((Map<__u32, gl_lane_config>((*trial_)->maps.gl_lane_config).set(0, config)));
  }
  Outcome mark(const Packet& packet, std::uint32_t priority, std::uint32_t segments = 0) {
    return run(bpf_program__fd((*trial_)->progs.gl_trial), packet, priority, segments);
  }
  gl_lane_count counted(__u32 lane) {
    gl_lane_count sum{};
    auto values = PerProcessorMap<__u32, gl_lane_count>((*trial_)->maps.gl_lane_count).get(lane);
    for (const auto& value : *values) {
      sum.packets += value.packets;
      sum.bytes += value.bytes;
      sum.rewritten += value.rewritten;
    }
    return sum;
  }
  std::uint64_t reason(__u32 counter) {
    auto values = PerProcessorMap<__u32, __u64>((*trial_)->maps.gl_count).get(counter);
    return std::accumulate(values->begin(), values->end(), std::uint64_t{0});
  }

  LanesConfig lanes_;
  std::optional<Skeleton<mark_trial_bpf>> trial_;
};

// What SO_PRIORITY the default table takes for which lane; everything else is the default lane.
int expected_lane(std::uint32_t tag) {
  switch (tag) {
    case 6:
      return GL_LANE_URGENT;
    case 4:
      return GL_LANE_HIGH;
    case 2:
      return GL_LANE_NORMAL;
    case 1:
      return GL_LANE_BULK;
    default:
      return GL_LANE_NORMAL;
  }
}

const std::vector<PacketParts>& shapes() {
  static const std::vector<PacketParts> all = {
      {.version = 4},
      {.version = 6},
      {.version = 4, .option_words = 10},
      {.vlans = {0x8100}, .version = 4},
      {.vlans = {0x8100}, .version = 6},
      {.vlans = {0x88a8, 0x8100}, .version = 4},
      {.vlans = {0x88a8, 0x8100}, .version = 6},
      {.version = 4, .payload = 0},
      {.version = 6, .flow_label = 0xfffff, .payload = 1400},
  };
  return all;
}

TEST_F(Mark, WritesTheLanesDscpAndKeepsEverythingElse) {
  for (auto parts : shapes()) {
    for (std::uint32_t tag = 0; tag <= 9; tag++) {
      for (const int old : {0, 1, 2, 3, 0xb8, 0xff, 36 << 2, (22 << 2) | 3}) {
        parts.traffic_class = static_cast<std::uint8_t>(old);
        const Packet packet = build_packet(parts);
        const auto outcome = mark(packet, tag);
        const int lane = expected_lane(tag);
        const std::string text = "tag " + std::to_string(tag) + " packet " + to_text(packet);
        ASSERT_EQ(outcome.verdict, -1) << text;
        ASSERT_EQ(traffic_class(outcome.packet, parts), (lanes_.dscp[lane] << 2) | (old & 3)) << text;
        ASSERT_EQ(outcome.priority, lanes_.queue_priority[lane]) << text;
        ASSERT_TRUE(checksum_right(outcome.packet, parts)) << text;
        // Built with the new class, it is the same packet to the byte.
        parts.traffic_class = traffic_class(outcome.packet, parts);
        ASSERT_EQ(outcome.packet, build_packet(parts)) << text;
      }
    }
  }
}

TEST_F(Mark, SameValueIsNoWrite) {
  PacketParts parts{.traffic_class = 36 << 2 | 2};
  mark(build_packet(parts), 6);
  EXPECT_EQ(counted(GL_LANE_URGENT).packets, 1U);
  EXPECT_EQ(counted(GL_LANE_URGENT).rewritten, 0U);
  parts.traffic_class = 0;
  mark(build_packet(parts), 6);
  EXPECT_EQ(counted(GL_LANE_URGENT).rewritten, 1U);
}

TEST_F(Mark, CountsSegmentsOfAnOffloadedPacket) {
  // A test run takes no more than a page.
  const PacketParts parts{.payload = 2 * 1448};
  const auto outcome = mark(build_packet(parts), 4, 2);
  EXPECT_EQ(traffic_class(outcome.packet, parts), 22 << 2);
  EXPECT_EQ(counted(GL_LANE_HIGH).packets, 2U);
  EXPECT_GE(counted(GL_LANE_HIGH).bytes, 2U * 1448);
}

TEST_F(Mark, WhatCannotBeParsedPassesUntouched) {
  std::vector<Packet> strange;
  strange.push_back(build_packet({.version = 0}));
  // Three tags are one more than is followed.
  strange.push_back(build_packet({.vlans = {0x88a8, 0x8100, 0x8100}}));
  // Behind a tag, for the kernel refuses a test run with an untagged packet that is cut off.
  for (const auto& parts :
       {PacketParts{.vlans = {0x8100}, .version = 4}, PacketParts{.vlans = {0x8100}, .version = 6}}) {
    auto cut = build_packet(parts);
    cut.resize(network_offset(parts) + (parts.version == 4 ? 19 : 39));
    strange.push_back(cut);
  }
  std::uint64_t expected = 0;
  for (const auto& packet : strange) {
    const auto outcome = mark(packet, 6);
    EXPECT_EQ(outcome.packet, packet) << to_text(packet);
    EXPECT_EQ(outcome.verdict, -1);
    EXPECT_EQ(outcome.priority, 6U);
    EXPECT_EQ(reason(GL_COUNT_PARSE), ++expected) << to_text(packet);
  }
}

TEST_F(Mark, NoiseChangesNothingButDscp) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; i++) {
    // As long as an IPv6 header, for the kernel refuses shorter ones.
    Packet packet(54 + random() % 200);
    for (auto& byte : packet) byte = static_cast<std::uint8_t>(random());
    static constexpr std::uint16_t kTypes[] = {0x0800, 0x86dd, 0x8100, 0x88a8, 0x0806};
    const auto type = kTypes[random() % 5];
    packet[12] = static_cast<std::uint8_t>(type >> 8);
    packet[13] = static_cast<std::uint8_t>(type);
    const auto outcome = mark(packet, random() % 8);
    ASSERT_EQ(outcome.verdict, -1) << to_text(packet);
    ASSERT_EQ(outcome.packet.size(), packet.size());
    int changed = 0;
    for (std::size_t at = 0; at < packet.size(); at++) changed += outcome.packet[at] != packet[at] ? 1 : 0;
    // TOS and two bytes of checksum, or two bytes of traffic class.
    ASSERT_LE(changed, 3) << to_text(packet);
  }
}

TEST_F(Mark, ObserveModeCountsAndChangesNothing) {
  set(make_lane_config(lanes_, true));
  const PacketParts parts{.traffic_class = 0x03};
  const auto outcome = mark(build_packet(parts), 6);
  EXPECT_EQ(outcome.packet, build_packet(parts));
  EXPECT_EQ(outcome.priority, 6U);
  EXPECT_EQ(counted(GL_LANE_URGENT).packets, 1U);
}

TEST_F(Mark, AnUntaggedSocketTakesItsJobsLane) {
  const PacketParts parts{};
  const auto untagged = mark(build_packet(parts), 0);
  EXPECT_EQ(traffic_class(untagged.packet, parts), lanes_.dscp[GL_LANE_NORMAL] << 2);
  // The socket of a test run belongs to the root cgroup, whose id is 1.
  ASSERT_TRUE((Map<__u64, __u32>((*trial_)->maps.gl_job_lane).set(1, GL_LANE_URGENT)));
  EXPECT_EQ(traffic_class(mark(build_packet(parts), 0).packet, parts), lanes_.dscp[GL_LANE_URGENT] << 2);
  EXPECT_EQ(traffic_class(mark(build_packet(parts), 1).packet, parts), lanes_.dscp[GL_LANE_BULK] << 2);
}

TEST_F(Mark, LeavesOthersSocketsAlone) {
  auto production = Skeleton<gl_lane_bpf>::open("gl_lane");
  ASSERT_TRUE(production) << production.error().message;
  ASSERT_TRUE(production->load());
  const auto config = make_lane_config(lanes_, false);
  ASSERT_TRUE((Map<__u32, gl_lane_config>((*production)->maps.gl_lane_config).set(0, config)));
  // The socket of a test run has no storage, as any socket outside of jobs.
  for (auto parts : shapes()) {
    parts.traffic_class = 0xb9;
    const auto packet = build_packet(parts);
    const auto outcome = run(bpf_program__fd((*production)->progs.gl_mark), packet, 6);
    EXPECT_EQ(outcome.packet, packet);
    EXPECT_EQ(outcome.priority, 6U);
    EXPECT_EQ(outcome.verdict, -1);
  }
}

}  // namespace
}  // namespace gradlane::test
