// SPDX-License-Identifier: Apache-2.0
// The count of active senders against a count by hand, with times of the test's choice.
#include <activity_trial.skel.h>
#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "bpf/map.hpp"
#include "bpf/skeleton.hpp"
#include "lib/law.h"
#include "packet.hpp"
#include "policy/scc_config.hpp"

namespace gradlane::test {
namespace {

class Activity : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Skeleton<activity_trial_bpf>::open("activity_trial");
    ASSERT_TRUE(opened) << opened.error().message;
    trial_.emplace(std::move(*opened));
    auto loaded = trial_->load();
    ASSERT_TRUE(loaded) << loaded.error().message;
    settings_ = make_scc_config(Config{}, 200000000);
    ASSERT_TRUE((Map<__u32, gl_scc_config>((*trial_)->maps.settings).set(0, settings_)));
  }

  void arrive(__u32 flow, __u32 lane, bool pushed = false) {
    auto* arguments = (*trial_)->bss;
    arguments->flow = flow;
    arguments->lane = lane;
    arguments->bytes = 1448;
    arguments->pushed = pushed ? 1 : 0;
    arguments->now_ns = now_ns_;
    const Packet packet = build_packet({});
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = packet.data();
    options.data_size_in = static_cast<__u32>(packet.size());
    ASSERT_EQ(bpf_prog_test_run_opts(bpf_program__fd((*trial_)->progs.gl_trial), &options), 0);
    const auto state = activity();
    const __u32 sooner =
        pushed ? state.idle_slots[lane] - std::min(state.idle_slots[lane], state.pushed_slots[lane]) : 0;
    last_[flow] = {static_cast<__u32>(now_ns_ / GL_SLOT_NS) - sooner, lane};
  }
  gl_activity activity() { return *Map<__u32, gl_activity>((*trial_)->maps.gl_activity).get(0); }
  __u64 progress(__u32 flow) { return Map<__u32, gl_place>((*trial_)->maps.places).get(flow)->bytes; }
  // Flows whose last payload is not older than the idle time that the kernel side uses now.
  std::array<__u32, GL_LANES> by_hand(const gl_activity& state) {
    std::array<__u32, GL_LANES> active{};
    for (const auto& [flow, seen] : last_) {
      if (state.slot - seen.first <= state.idle_slots[seen.second]) active[seen.second]++;
    }
    return active;
  }

  gl_scc_config settings_{};
  __u64 now_ns_ = 1000000000000;
  std::map<__u32, std::pair<__u32, __u32>> last_;
  std::optional<Skeleton<activity_trial_bpf>> trial_;
};

TEST_F(Activity, EqualsACountByHand) {
  std::mt19937 random(11);
  for (int step = 0; step < 20000; step++) {
    // Bursts and pauses, up to longer than the whole wheel.
    const auto kind = random() % 1000;
    now_ns_ += kind < 900 ? random() % 60000 : kind < 995 ? random() % 3000000 : random() % 400000000;
    const __u32 flows = 1 + (step / 2500) * 30;
    arrive(random() % flows, random() % GL_LANES, random() % 4 == 0);
    const auto state = activity();
    const auto expected = by_hand(state);
    for (int lane = 0; lane < GL_LANES; lane++) {
      ASSERT_EQ(state.active[lane], expected[lane]) << "step " << step << " lane " << lane;
    }
  }
}

TEST_F(Activity, SteadySendersAreAllCountedAndShareTheLink) {
  for (const __u32 senders : {1U, 2U, 8U, 64U}) {
    // Each sends a segment in turn, at the rate of the link.
    const __u64 gap = 1448 * 1000000000ULL / settings_.payload_rate;
    for (__u32 i = 0; i < senders * 40; i++) {
      now_ns_ += gap;
      arrive(i % senders, GL_LANE_NORMAL);
    }
    const auto state = activity();
    EXPECT_EQ(state.active[GL_LANE_NORMAL], senders);
    const double total = static_cast<double>(state.grant[GL_LANE_NORMAL]) * senders;
    EXPECT_GT(total, 0.99 * static_cast<double>(settings_.payload_rate));
    const double most = static_cast<double>(gl_overcommit(settings_.buffer, 1448, senders, 1)) / GL_ONE;
    EXPECT_LT(total, 1.001 * most * static_cast<double>(settings_.payload_rate));
    now_ns_ += 1000000000;
  }
}

TEST_F(Activity, ASenderThatHasNothingMoreToSendIsForgottenSooner) {
  // A first turn, for idle times to follow from grants.
  for (__u32 flow = 0; flow < 8; flow++) arrive(flow, GL_LANE_NORMAL);
  now_ns_ += GL_SLOT_NS;
  for (__u32 flow = 0; flow < 8; flow++) arrive(flow, GL_LANE_NORMAL, flow < 4);
  const auto state = activity();
  ASSERT_LT(state.pushed_slots[GL_LANE_NORMAL], state.idle_slots[GL_LANE_NORMAL]);
  EXPECT_EQ(state.active[GL_LANE_NORMAL], 8U);
  now_ns_ += (state.pushed_slots[GL_LANE_NORMAL] + 1) * GL_SLOT_NS;
  arrive(7, GL_LANE_NORMAL);
  EXPECT_EQ(activity().active[GL_LANE_NORMAL], 4U);
}

TEST_F(Activity, AClockThatIsBehindDoesNotTurnTheWheelBack) {
  arrive(1, GL_LANE_URGENT);
  now_ns_ += 5000000;
  arrive(2, GL_LANE_URGENT);
  const auto before = activity();
  now_ns_ -= 2 * GL_SLOT_NS;
  arrive(3, GL_LANE_URGENT);
  const auto after = activity();
  EXPECT_EQ(after.slot, before.slot);
  EXPECT_EQ(after.active[GL_LANE_URGENT], before.active[GL_LANE_URGENT] + 1);
}

TEST_F(Activity, ThePeakOfTheLastBurstIsExpectedAgain) {
  for (__u32 flow = 0; flow < 40; flow++) arrive(flow, GL_LANE_BULK);
  // However long the pause was: iterations may take seconds.
  now_ns_ += 5000000000;
  arrive(0, GL_LANE_BULK);
  auto state = activity();
  EXPECT_EQ(state.active[GL_LANE_BULK], 1U);
  EXPECT_EQ(state.expected, 40U);
  // While others join, their shares are kept free.
  const auto share = static_cast<double>(settings_.payload_rate) / 40;
  EXPECT_LT(static_cast<double>(state.grant[GL_LANE_BULK]), 1.3 * share);
  // Nobody else has come.
  now_ns_ += (GL_JOIN_SLOTS + 1) * GL_SLOT_NS;
  arrive(0, GL_LANE_BULK);
  EXPECT_GT(activity().grant[GL_LANE_BULK], settings_.payload_rate);
  // Next time nobody expects them.
  now_ns_ += 200000000;
  arrive(0, GL_LANE_BULK);
  EXPECT_EQ(activity().expected, 1U);
}

TEST_F(Activity, ProgressIsComparedWithinABurst) {
  for (__u32 round = 0; round < 20; round++) {
    for (__u32 flow = 0; flow < 4; flow++) {
      now_ns_ += 100000;
      if (flow != 0 || round % 4 == 0) arrive(flow, GL_LANE_NORMAL);
    }
  }
  auto state = activity();
  EXPECT_EQ(state.burst_flows[GL_LANE_NORMAL], 4U);
  EXPECT_EQ(progress(1), 20 * 1448U);
  const __u64 mean = state.burst_bytes[GL_LANE_NORMAL] / state.burst_flows[GL_LANE_NORMAL];
  EXPECT_GE(mean, (3 * 20 + 5) * 1448U / 4);
  EXPECT_GE(progress(0) + (GL_BEHIND_MOST + 4) * 1448, mean) << "who sends little is not helped for ever";
  // Other lanes have a progress of their own.
  arrive(5, GL_LANE_URGENT);
  EXPECT_EQ(activity().burst_flows[GL_LANE_URGENT], 1U);
  EXPECT_EQ(progress(5), 1448U);
  // One that comes later has nothing to catch up.
  for (int i = 0; i < 40; i++) {
    now_ns_ += 500000;
    arrive(1, GL_LANE_NORMAL);
  }
  arrive(1, GL_LANE_NORMAL);
  arrive(9, GL_LANE_NORMAL);
  EXPECT_GE(progress(9), mean);
  // The next burst begins at nothing.
  now_ns_ += 200000000;
  arrive(1, GL_LANE_NORMAL);
  EXPECT_EQ(progress(1), 1448U);
  EXPECT_EQ(activity().burst_flows[GL_LANE_NORMAL], 1U);
}

}  // namespace
}  // namespace gradlane::test
