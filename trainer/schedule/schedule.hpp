// SPDX-License-Identifier: Apache-2.0
// Schedules: when a gradient may be sent, which slice goes next, and when the next forward pass may start.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace gradlane::train {

using Clock = std::chrono::steady_clock;

// What tells the schedules apart; all of them send the same slices.
struct Schedule {
  std::string_view name;
  // Gradients wait until the whole backward pass is over, and the next forward pass until all parameters are
  // there: what a plain trainer does. Otherwise both happen layer by layer.
  bool whole_passes = false;
  // The slice that the next forward pass needs first goes next, instead of the one that was ready first, and
  // little is handed to the kernel at a time, so that an urgent slice finds few bytes ahead of itself.
  bool by_urgency = false;
};

// "serial": whole passes, first come first served. "wfbp": wait-free back-propagation, first come first
// served. "pwfbp": the same by urgency. An error names what is allowed.
Result<Schedule> find_schedule(std::string_view name);

// What a send order may know of one lane when it decides.
struct LaneRoom {
  bool room = false;        // a further slice may be handed to the kernel
  bool unfinished = false;  // a slice that was started is not wholly handed to the kernel yet
  std::size_t unsent = 0;   // bytes in the kernel that were not sent yet
};

// A slice as far as the order of sending cares.
struct SendItem {
  std::uint8_t lane = 0;
  std::size_t bytes = 0;
};

// The slices that are ready to be sent to one peer, over all lanes, and which of them goes next. Knows
// nothing of sockets, and time only as an argument. Not thread safe.
class SendOrder {
 public:
  virtual ~SendOrder() = default;

  // Slice (an index into the items) is ready. It must not be waiting already.
  virtual void add(std::uint32_t slice) = 0;
  // Takes out the slice to start now, given the state of each lane; none if none waits or none may start.
  virtual std::optional<std::uint32_t> next(std::span<const LaneRoom> lanes, Clock::time_point now) = 0;
  // Whether a slice of this lane waits.
  virtual bool waiting(std::size_t lane) const = 0;
  // When next() should be asked again although no lane changed; none if never.
  virtual std::optional<Clock::time_point> ask_again() const = 0;

  bool empty() const;
  std::size_t lanes() const { return count_; }

 protected:
  explicit SendOrder(std::size_t lanes) : count_(lanes) {}

 private:
  std::size_t count_;
};

// How urgency is kept from starving the lower lanes.
struct StarvationGuard {
  // Of the bytes that more urgent lanes send while a lane waits, this share is owed to it: 0..1.
  double share = 0.05;
  // A lane that is full and sends nothing for so long no longer holds the lower ones back. Longer than the
  // pauses of a congested path, shorter than a retransmission timeout.
  Clock::duration stall = std::chrono::milliseconds(20);
};

// First come first served, within each lane; among lanes with room the slice that is ready for longest.
std::unique_ptr<SendOrder> make_arrival_order(std::vector<SendItem> items, std::size_t lanes);
// The smallest index first; a lane starts nothing while a more urgent one has something waiting, but for the
// guard. lane must not fall with the index.
std::unique_ptr<SendOrder> make_urgency_order(std::vector<SendItem> items, std::size_t lanes,
                                              StarvationGuard guard = {});

}  // namespace gradlane::train
