// SPDX-License-Identifier: Apache-2.0
// Properties of SCC's control law; the same header that the BPF programs compile.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "lib/law.h"
#include "policy/scc_config.hpp"

namespace gradlane {
namespace {

constexpr std::uint32_t kSegment = 1448;

gl_scc_config settings(std::uint64_t rate_bit_s, LanePolicy policy = LanePolicy::strict) {
  Config config;
  config.lanes.policy = policy;
  return make_scc_config(config, rate_bit_s);
}

double overcommitted(const gl_scc_config& config, std::uint32_t senders, std::uint32_t lanes) {
  return static_cast<double>(config.payload_rate) * gl_overcommit(config.buffer, kSegment, senders, lanes) /
         GL_ONE;
}

TEST(Rate, SurvivesItsWireForm) {
  std::uint64_t last = 0;
  for (std::uint64_t rate = 1024; rate < 100'000'000'000ULL; rate += rate / 100 + 1) {
    const std::uint64_t decoded = gl_decode_rate(gl_encode_rate(rate));
    ASSERT_LE(decoded, rate);
    ASSERT_GE(static_cast<double>(decoded), static_cast<double>(rate) * (1 - 1.0 / 1024) - 1024);
    ASSERT_GE(decoded, last) << "not monotonic at " << rate;
    last = decoded;
  }
  EXPECT_EQ(gl_decode_rate(gl_encode_rate(0)), 1024U) << "a grant is never zero";
  EXPECT_GT(gl_decode_rate(gl_encode_rate(~0ULL)), 1ULL << 40);
}

TEST(Shares, NeverExceedTheLinkByMoreThanTheOvercommit) {
  std::mt19937 random(3);
  for (const auto policy : {LanePolicy::strict, LanePolicy::weighted}) {
    const auto config = settings(25'000'000'000, policy);
    for (int i = 0; i < 5000; i++) {
      std::uint32_t active[GL_LANES];
      for (auto& senders : active) senders = random() % 3 == 0 ? 0 : random() % 300;
      __u64 grant[GL_LANES];
      gl_shares(&config, active, 0, kSegment, GL_ONE, grant);
      std::uint64_t total = 0;
      bool busy = false;
      std::uint32_t all = 0, lanes = 0;
      for (int lane = 0; lane < GL_LANES; lane++) {
        ASSERT_GT(grant[lane], 0U) << "lane " << lane;
        total += grant[lane] * active[lane];
        all += active[lane];
        lanes += active[lane] != 0 ? 1 : 0;
        busy = busy || active[lane] != 0;
      }
      ASSERT_LE(static_cast<double>(total), 1.0001 * overcommitted(config, all, lanes));
      if (busy) {
        ASSERT_GE(static_cast<double>(total), 0.99 * static_cast<double>(config.payload_rate));
      }
    }
  }
}

TEST(Shares, StrictGivesTheMostUrgentLaneAllButWhatTheOthersKeep) {
  const auto config = settings(200'000'000);
  std::mt19937 random(9);
  for (int i = 0; i < 5000; i++) {
    std::uint32_t active[GL_LANES];
    std::uint32_t all = 0, lanes = 0;
    for (auto& senders : active) {
      all += senders = random() % 3 == 0 ? 0 : random() % 300;
      lanes += senders != 0 ? 1 : 0;
    }
    __u64 grant[GL_LANES];
    gl_shares(&config, active, 0, kSegment, GL_ONE, grant);
    const double link = overcommitted(config, all, lanes);
    bool first = true;
    for (int lane = 0; lane < GL_LANES; lane++) {
      if (active[lane] == 0) continue;
      const double equal = link / all;
      const auto told = static_cast<double>(grant[lane]);
      if (first) {
        ASSERT_GE(told, equal * 0.84) << "five per cent for each lane below";
      } else {
        ASSERT_GE(told, equal * 0.49);
        ASSERT_GE(told * active[lane], link * config.minimum_share / GL_ONE * 0.99);
        ASSERT_LE(told, std::max(equal / 2, link * 0.051 / active[lane]));
      }
      first = false;
    }
  }
}

TEST(Shares, AreKeptFreeForThoseWhoAreExpected) {
  for (const auto policy : {LanePolicy::strict, LanePolicy::weighted}) {
    const auto config = settings(200'000'000, policy);
    for (std::uint32_t senders = 1; senders <= 64; senders++) {
      const std::uint32_t some[GL_LANES] = {0, 0, senders, 0}, all[GL_LANES] = {0, 0, 64, 0};
      __u64 early[GL_LANES], late[GL_LANES];
      gl_shares(&config, some, 64, kSegment, GL_ONE, early);
      gl_shares(&config, all, 0, kSegment, GL_ONE, late);
      ASSERT_NEAR(static_cast<double>(early[2]), static_cast<double>(late[2]),
                  0.001 * static_cast<double>(late[2]))
          << senders;
    }
  }
}

TEST(Shares, DoNotGrowWithMoreSenders) {
  const auto config = settings(10'000'000'000);
  __u64 last = ~0ULL;
  for (std::uint32_t senders = 1; senders < 5000; senders++) {
    const std::uint32_t active[GL_LANES] = {0, senders, 0, 0};
    __u64 grant[GL_LANES];
    gl_shares(&config, active, 0, kSegment, GL_ONE, grant);
    ASSERT_LE(grant[1], last) << senders;
    last = grant[1];
  }
}

TEST(Overcommit, LetsNoMoreThanAQuarterOfTheBufferGrow) {
  for (std::uint32_t senders = 1; senders < 5000; senders++) {
    const double x = static_cast<double>(gl_overcommit(65536, kSegment, senders, 1)) / GL_ONE - 1;
    ASSERT_LE(x, 0.25);
    ASSERT_GE(x, 0.019);
    if (x > 0.02) {
      ASSERT_LE(x * senders * kSegment, 65536.0 / 4);
    }
  }
}

TEST(Beginning, EndsWhenNobodyJoinsAndAfterAGapAndAHalf) {
  const std::uint64_t rate = 23'000'000;  // 64 senders: a gap of 4 ms, that is 7.8 slots
  EXPECT_TRUE(gl_is_beginning(rate, kSegment, 64, 0, 0));
  EXPECT_TRUE(gl_is_beginning(rate, kSegment, 64, 11, GL_JOIN_SLOTS));
  EXPECT_FALSE(gl_is_beginning(rate, kSegment, 64, 11, GL_JOIN_SLOTS + 1));
  EXPECT_FALSE(gl_is_beginning(rate, kSegment, 64, 12, 0));
  EXPECT_FALSE(gl_is_beginning(rate, kSegment, 0, GL_JOIN_SLOTS + 1, 0)) << "nobody was there last time";
}

TEST(OwnShare, HelpsThoseWhoAreBehindByAnEighthAtTheMost) {
  const std::uint64_t grant = 1'000'000;
  EXPECT_EQ(gl_own_share(grant, 50'000, 40'000, kSegment), grant) << "nobody is slowed down";
  std::uint64_t last = grant;
  for (std::uint64_t behind = 0; behind < 100'000; behind += 100) {
    const auto share = gl_own_share(grant, 100'000 - behind, 100'000, kSegment);
    ASSERT_GE(share, last);
    ASSERT_LE(share, grant * 9 / 8);
    last = share;
  }
  EXPECT_EQ(last, grant * 9 / 8);
}

TEST(Closing, BringsAShortLastSegmentCloserWithinTheTolerance) {
  std::mt19937 random(13);
  for (int i = 0; i < 5000; i++) {
    const std::uint64_t rate = 10'000 + random() % 100'000'000;
    const std::uint32_t rest = random() % (kSegment + 100), tolerance = random() % 2000;
    const std::uint64_t closing = gl_closing_rate(rate, kSegment, rest, tolerance);
    const double gap = 1e6 * kSegment / static_cast<double>(rate);
    const double closing_gap = 1e6 * kSegment / static_cast<double>(closing);
    if (rest == 0 || rest >= kSegment) {
      ASSERT_EQ(closing, rate);
      continue;
    }
    // Whole microseconds are lost on the way.
    ASSERT_GE(closing_gap + 2 + gap * 0.03, gap * rest / kSegment);
    ASSERT_LE(gap - closing_gap, 2.0 * tolerance * kSegment / rest + 2 + gap * 0.03);
  }
}

TEST(Shares, WeightedGivesSendersInProportionToTheirLanes) {
  const auto config = settings(200'000'000, LanePolicy::weighted);
  const std::uint32_t active[GL_LANES] = {3, 5, 7, 2};
  __u64 grant[GL_LANES];
  gl_shares(&config, active, 0, kSegment, GL_ONE, grant);
  for (int lane = 1; lane < GL_LANES; lane++) {
    EXPECT_NEAR(static_cast<double>(grant[0]) / static_cast<double>(grant[lane]),
                static_cast<double>(config.weight[0]) / config.weight[lane], 0.01);
  }
}

TEST(RestartWindow, FillsHalfOfTheBufferTogether) {
  for (const std::uint32_t buffer : {65536U, 1U << 20, 16U << 20}) {
    for (std::uint32_t senders = 1; senders < 2000; senders++) {
      const std::uint32_t window = gl_restart_window(buffer, 1448, senders);
      ASSERT_GE(window, GL_RESTART_LEAST);
      ASSERT_LE(window, GL_RESTART_MOST);
      ASSERT_EQ(gl_is_crowded(window), senders * 1448ULL * 2 > buffer * 2ULL) << senders << " " << buffer;
      if (window > GL_RESTART_LEAST) {
        ASSERT_LE(window * 1448ULL * senders / 4, buffer / 2);
      }
    }
  }
}

TEST(Trim, RisesWhileTheLinkIsIdleAndFallsBack) {
  std::uint32_t trim = GL_ONE;
  for (int i = 0; i < 20; i++) trim = gl_next_trim(trim, 10, 100);
  EXPECT_EQ(trim, GL_TRIM_MOST);
  for (int i = 0; i < 40; i++) trim = gl_next_trim(trim, 90, 100);
  EXPECT_EQ(trim, GL_ONE);
}

TEST(Stretch, SlowsByTheQueueButNeverBelowHalf) {
  const std::uint64_t grant = 3'000'000;
  EXPECT_EQ(gl_stretched_rate(grant, 2896, 300, 600), grant) << "within the tolerance";
  std::uint64_t last = grant;
  for (std::uint32_t queue = 600; queue < 100000; queue += 100) {
    const auto rate = gl_stretched_rate(grant, 2896, queue, 600);
    ASSERT_LE(rate, last);
    ASSERT_GE(rate, grant / 2);
    last = rate;
  }
  EXPECT_EQ(last, grant / 2);
}

TEST(Stretch, DoesNotOverflowAtHighRates) {
  // 400 Gbit/s, a burst of ten jumbo segments, a second of queue.
  const std::uint64_t grant = 50'000'000'000;
  EXPECT_EQ(gl_stretched_rate(grant, 89480, 1'000'000, 10), grant / 2);
}

TEST(Window, CoversTheRoundTripAndTheRestartWindow) {
  std::mt19937 random(5);
  for (int i = 0; i < 5000; i++) {
    const std::uint64_t rate = 1000 + random() % 1'000'000'000;
    const std::uint32_t round_trip = random() % 10000, slack = random() % 5000;
    const auto restart = static_cast<std::uint8_t>(4 + random() % 37);
    const double bytes = static_cast<double>(rate) * 1.25 * (round_trip + slack) / 1e6;
    const std::uint32_t window = gl_window(rate, 1448, round_trip, slack, restart);
    ASSERT_GE(window, restart / 4U);
    ASSERT_GE(window * 1448.0 + 1448, bytes);
    ASSERT_LE(window, std::max<double>(restart / 4.0, bytes / 1448 + 1));
  }
}

TEST(Idle, CoversFourGapsOfASlowSender) {
  for (std::uint64_t grant = 20'000; grant < 10'000'000'000; grant *= 3) {
    const double gap_ns = 1448e9 / static_cast<double>(grant);
    const std::uint32_t slots = gl_idle_slots(grant, 1448, 4, 100, GL_IDLE_GAPS);
    ASSERT_GE(slots, 2U);
    ASSERT_LT(slots, static_cast<std::uint32_t>(GL_WHEEL));
    if (4 * gap_ns < (GL_WHEEL - 6.0) * GL_SLOT_NS) {
      ASSERT_GE(slots * static_cast<double>(GL_SLOT_NS), 4 * gap_ns);
    }
  }
}

}  // namespace
}  // namespace gradlane
