// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace gradlane::train {
namespace {

using std::chrono::milliseconds;

const Clock::time_point kStart{};
const LaneRoom kRoom{.room = true};
const LaneRoom kFull{.room = false, .unfinished = false, .unsent = 5000};

std::vector<SendItem> items_in_lanes(const std::vector<std::uint8_t>& lane_of, std::size_t bytes = 1000) {
  std::vector<SendItem> items;
  for (const std::uint8_t lane : lane_of) items.push_back({.lane = lane, .bytes = bytes});
  return items;
}

TEST(Schedule, IsFoundByName) {
  const auto serial = find_schedule("serial");
  const auto wfbp = find_schedule("wfbp");
  const auto pwfbp = find_schedule("pwfbp");
  ASSERT_TRUE(serial && wfbp && pwfbp);
  EXPECT_TRUE(serial->whole_passes && !serial->by_urgency);
  EXPECT_TRUE(!wfbp->whole_passes && !wfbp->by_urgency);
  EXPECT_TRUE(!pwfbp->whole_passes && pwfbp->by_urgency);
  const auto other = find_schedule("fifo");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("serial, wfbp, pwfbp"), std::string::npos);
}

TEST(ArrivalOrder, IsExactlyFirstComeFirstServed) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint8_t> lane_of(1 + random() % 40);
    for (auto& lane : lane_of) lane = random() % 4;
    const auto order = make_arrival_order(items_in_lanes(lane_of), 4);
    std::vector<std::uint32_t> arrivals(lane_of.size());
    std::iota(arrivals.begin(), arrivals.end(), 0U);
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    for (const std::uint32_t slice : arrivals) order->add(slice);
    const std::vector<LaneRoom> rooms(4, kRoom);
    for (const std::uint32_t slice : arrivals) ASSERT_EQ(order->next(rooms, kStart), slice);
    ASSERT_FALSE(order->next(rooms, kStart).has_value());
    ASSERT_TRUE(order->empty());
  }
}

TEST(ArrivalOrder, PassesByAFullLaneOnly) {
  const auto order = make_arrival_order(items_in_lanes({0, 1, 0, 1}), 2);
  for (const std::uint32_t slice : {0U, 2U, 1U, 3U}) order->add(slice);
  EXPECT_EQ(order->next(std::vector{kFull, kRoom}, kStart), 1U);
  EXPECT_EQ(order->next(std::vector{kRoom, kRoom}, kStart), 0U);
  EXPECT_EQ(order->next(std::vector{kRoom, kFull}, kStart), 2U);
  EXPECT_FALSE(order->next(std::vector{kRoom, kFull}, kStart).has_value());
  EXPECT_TRUE(order->waiting(1));
}

// Whatever arrives in between, the slice with the smallest index of those that wait goes next.
TEST(UrgencyOrder, TakesWhatIsNeededFirst) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const auto order = make_urgency_order(items_in_lanes(std::vector<std::uint8_t>(50, 0)), 1);
    std::vector<std::uint32_t> todo(50);
    std::iota(todo.begin(), todo.end(), 0U);
    std::shuffle(todo.begin(), todo.end(), random);
    std::vector<std::uint32_t> waiting;
    while (!todo.empty() || !waiting.empty()) {
      if (!todo.empty() && (waiting.empty() || random() % 2 == 0)) {
        order->add(todo.back());
        waiting.push_back(todo.back());
        todo.pop_back();
        continue;
      }
      const auto first = std::ranges::min_element(waiting);
      ASSERT_EQ(order->next(std::vector{kRoom}, kStart), *first);
      waiting.erase(first);
    }
    ASSERT_TRUE(order->empty());
  }
}

TEST(UrgencyOrder, HoldsLowerLanesBackWhileAnUrgentOneIsBusy) {
  const auto order = make_urgency_order(items_in_lanes({0, 1}), 2, {.share = 0});
  order->add(0);
  order->add(1);
  EXPECT_FALSE(order->next(std::vector{kFull, kRoom}, kStart).has_value());
  ASSERT_TRUE(order->ask_again().has_value());
  EXPECT_EQ(order->next(std::vector{kRoom, kRoom}, kStart), 0U);
  // Started is not sent: the rest of the slice is still in user space.
  const LaneRoom unfinished{.room = false, .unfinished = true, .unsent = 5000};
  EXPECT_FALSE(order->next(std::vector{unfinished, kRoom}, kStart).has_value());
  // What the kernel has of it holds nothing back: the lane's tag does that.
  EXPECT_EQ(order->next(std::vector{kFull, kRoom}, kStart), 1U);
}

TEST(UrgencyOrder, LetsLowerLanesPassAStalledOne) {
  const StarvationGuard guard{.share = 0, .stall = milliseconds(20)};
  const auto order = make_urgency_order(items_in_lanes({0, 1, 2}), 3, guard);
  for (const std::uint32_t slice : {0U, 1U, 2U}) order->add(slice);
  const std::vector stuck{kFull, kRoom, kRoom};
  EXPECT_FALSE(order->next(stuck, kStart).has_value());
  EXPECT_EQ(order->ask_again(), kStart + milliseconds(20));
  EXPECT_FALSE(order->next(stuck, kStart + milliseconds(19)).has_value());
  EXPECT_EQ(order->next(stuck, kStart + milliseconds(20)), 1U);
  // As soon as the urgent lane has room it comes first again.
  EXPECT_EQ(order->next(std::vector{kRoom, kRoom, kRoom}, kStart + milliseconds(21)), 0U);
}

TEST(UrgencyOrder, TakesALaneThatSendsForNotStalled) {
  const StarvationGuard guard{.share = 0, .stall = milliseconds(20)};
  const auto order = make_urgency_order(items_in_lanes({0, 1}), 2, guard);
  order->add(0);
  order->add(1);
  for (std::size_t step = 0; step < 100; ++step) {
    const LaneRoom slow{.room = false, .unfinished = false, .unsent = 100000 - step};
    const auto now = kStart + milliseconds(10) * static_cast<int>(step);
    ASSERT_FALSE(order->next(std::vector{slow, kRoom}, now).has_value());
  }
}

// However much is waiting on more urgent lanes, each lower lane gets its share of what is sent.
TEST(UrgencyOrder, StarvesNoLane) {
  const std::size_t lanes = 4;
  const std::size_t per_lane = 50;
  std::vector<std::uint8_t> lane_of;
  for (std::uint8_t lane = 0; lane < lanes; ++lane) lane_of.insert(lane_of.end(), per_lane, lane);
  const double share = 0.05;
  const auto order = make_urgency_order(items_in_lanes(lane_of), lanes, {.share = share});
  for (std::uint32_t slice = 0; slice < lane_of.size(); ++slice) order->add(slice);
  std::vector<double> sent(lanes, 0);
  const std::vector<LaneRoom> rooms(lanes, kRoom);
  for (int turn = 0; turn < 10000; ++turn) {
    const auto slice = order->next(rooms, kStart);
    ASSERT_TRUE(slice.has_value());
    sent[lane_of[*slice]] += 1;
    order->add(*slice);  // there is always more to send
  }
  const double total = std::accumulate(sent.begin(), sent.end(), 0.0);
  for (std::size_t lane = 1; lane < lanes; ++lane) {
    EXPECT_GT(sent[lane] / total, share * 0.8) << "lane " << lane;
    EXPECT_LT(sent[lane] / total, share * 1.5) << "lane " << lane;
  }
  EXPECT_GT(sent[0] / total, 0.8);
}

}  // namespace
}  // namespace gradlane::train
