// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

namespace gradlane::train {

namespace {

constexpr std::array kSchedules = {
    Schedule{.name = "serial", .whole_passes = true, .by_urgency = false},
    Schedule{.name = "wfbp", .whole_passes = false, .by_urgency = false},
    Schedule{.name = "pwfbp", .whole_passes = false, .by_urgency = true},
};

class ArrivalOrder final : public SendOrder {
 public:
  ArrivalOrder(std::vector<SendItem> items, std::size_t lanes)
      : SendOrder(lanes), items_(std::move(items)), queues_(lanes) {}

  void add(std::uint32_t slice) override { queues_[items_[slice].lane].push_back({arrivals_++, slice}); }

  std::optional<std::uint32_t> next(std::span<const LaneRoom> lanes, Clock::time_point /*now*/) override {
    std::deque<Arrival>* oldest = nullptr;
    for (std::size_t lane = 0; lane < queues_.size(); ++lane) {
      std::deque<Arrival>& queue = queues_[lane];
      if (queue.empty() || !lanes[lane].room) continue;
      if (oldest == nullptr || queue.front().number < oldest->front().number) oldest = &queue;
    }
    if (oldest == nullptr) return std::nullopt;
    const std::uint32_t slice = oldest->front().slice;
    oldest->pop_front();
    return slice;
  }

  bool waiting(std::size_t lane) const override { return !queues_[lane].empty(); }
  std::optional<Clock::time_point> ask_again() const override { return std::nullopt; }

 private:
  struct Arrival {
    std::uint64_t number = 0;
    std::uint32_t slice = 0;
  };
  std::vector<SendItem> items_;
  std::vector<std::deque<Arrival>> queues_;
  std::uint64_t arrivals_ = 0;
};

class UrgencyOrder final : public SendOrder {
 public:
  UrgencyOrder(std::vector<SendItem> items, std::size_t lanes, StarvationGuard guard)
      : SendOrder(lanes), items_(std::move(items)), guard_(guard), state_(lanes) {}

  void add(std::uint32_t slice) override { state_[items_[slice].lane].waiting.insert(slice); }

  std::optional<std::uint32_t> next(std::span<const LaneRoom> rooms, Clock::time_point now) override {
    ask_again_.reset();
    // A lane that is owed enough for its first slice goes before the more urgent ones.
    for (std::size_t lane = 1; lane < state_.size(); ++lane) {
      Lane& it = state_[lane];
      if (it.waiting.empty() || !rooms[lane].room || it.owed < first_bytes(lane)) continue;
      it.owed -= first_bytes(lane);
      return take(lane);
    }
    for (std::size_t lane = 0; lane < state_.size(); ++lane) {
      if (state_[lane].waiting.empty() && !rooms[lane].unfinished) continue;
      if (rooms[lane].room) return take(lane);
      const Clock::time_point stalls = stall_end(lane, rooms[lane].unsent, now);
      if (now < stalls) {
        ask_again_ = stalls;
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool waiting(std::size_t lane) const override { return !state_[lane].waiting.empty(); }
  std::optional<Clock::time_point> ask_again() const override { return ask_again_; }

 private:
  struct Lane {
    std::set<std::uint32_t> waiting;
    double owed = 0;  // bytes
    // Since when it is full with the same number of unsent bytes.
    std::optional<Clock::time_point> full_since;
    std::size_t unsent = 0;
  };

  double first_bytes(std::size_t lane) const {
    return static_cast<double>(items_[*state_[lane].waiting.begin()].bytes);
  }

  std::uint32_t take(std::size_t lane) {
    Lane& it = state_[lane];
    const std::uint32_t slice = *it.waiting.begin();
    it.waiting.erase(it.waiting.begin());
    it.full_since.reset();
    if (it.waiting.empty()) it.owed = 0;
    for (std::size_t lower = lane + 1; lower < state_.size(); ++lower) {
      if (!state_[lower].waiting.empty())
        state_[lower].owed += guard_.share * static_cast<double>(items_[slice].bytes);
    }
    return slice;
  }

  Clock::time_point stall_end(std::size_t lane, std::size_t unsent, Clock::time_point now) {
    Lane& it = state_[lane];
    if (!it.full_since || it.unsent != unsent) it.full_since = now;
    it.unsent = unsent;
    return *it.full_since + guard_.stall;
  }

  std::vector<SendItem> items_;
  StarvationGuard guard_;
  std::vector<Lane> state_;
  std::optional<Clock::time_point> ask_again_;
};

}  // namespace

bool SendOrder::empty() const {
  for (std::size_t lane = 0; lane < count_; ++lane) {
    if (waiting(lane)) return false;
  }
  return true;
}

Result<Schedule> find_schedule(std::string_view name) {
  std::string allowed;
  for (const Schedule& schedule : kSchedules) {
    if (schedule.name == name) return schedule;
    allowed += (allowed.empty() ? "" : ", ") + std::string(schedule.name);
  }
  return make_error("there is no schedule \"" + std::string(name) + "\"; choose one of " + allowed);
}

std::unique_ptr<SendOrder> make_arrival_order(std::vector<SendItem> items, std::size_t lanes) {
  return std::make_unique<ArrivalOrder>(std::move(items), lanes);
}

std::unique_ptr<SendOrder> make_urgency_order(std::vector<SendItem> items, std::size_t lanes,
                                              StarvationGuard guard) {
  return std::make_unique<UrgencyOrder>(std::move(items), lanes, guard);
}

}  // namespace gradlane::train
