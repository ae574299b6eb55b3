// SPDX-License-Identifier: Apache-2.0
// Sends slices to one peer over its lanes, in the order that the schedule wants, with few bytes in the
// kernel.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slices.hpp"
#include "sync/connection.hpp"
#include "sync/setup.hpp"
#include "sync/wire.hpp"

namespace gradlane::train {

// What both sides derive from the setup and the model: which slices there are and where they go.
struct Plan {
  Schedule schedule;
  std::vector<Slice> slices;
  std::vector<std::uint8_t> lane_of;  // of each slice
  std::size_t lanes = 1;
  std::vector<std::uint32_t> first_slice;  // of each layer, and one past the last: layers + 1 entries

  // setup has passed check_setup().
  static Plan make(const TrainingSetup& setup, std::span<const std::size_t> layer_parameters);
  // The options of a data connection of this lane.
  SocketOptions socket_options(const TrainingSetup& setup, std::uint8_t lane) const;
};

// The bytes that a lane may keep unsent in the kernel, for TCP_NOTSENT_LOWAT; 0: as many as the kernel takes.
std::uint32_t low_water(const Plan& plan, std::uint32_t slice_bytes);

class Sender {
 public:
  // type is gradient or parameters. plan must live longer.
  Sender(const Plan& plan, MessageType type, std::uint32_t slice_bytes);

  // The connection of a lane, which must live as long as the sender is used.
  void attach(std::uint8_t lane, Connection& connection) { connections_[lane] = &connection; }

  // The slice's data of this step is ready; its memory stays as it is until the peer has it.
  void add(std::uint32_t slice, std::uint32_t step, std::span<const std::byte> data);
  // Hands to the kernel what may go now.
  Status pump(Clock::time_point now);
  // Whether pump() has to be called as soon as this lane's socket is writable.
  bool wants_write(std::size_t lane) const { return wants_write_[lane]; }
  // Whether pump() has to be called at some time although no socket became writable.
  std::optional<Clock::time_point> wake_at() const { return wake_at_; }
  // Nothing is left to be handed to the kernel.
  bool idle() const;

 private:
  struct Ready {
    std::uint32_t step = 0;
    std::span<const std::byte> data;
  };

  Status pump_by_arrival(Clock::time_point now);
  Status pump_by_urgency(Clock::time_point now);
  void start(std::uint32_t slice);
  bool over_budget(std::size_t outstanding, Clock::time_point now);
  void refresh_path(Clock::time_point now);

  const Plan& plan_;
  MessageType type_;
  std::uint32_t low_water_;
  std::unique_ptr<SendOrder> order_;
  std::vector<Ready> ready_;  // by slice
  std::vector<Connection*> connections_;
  std::vector<bool> wants_write_;
  std::vector<LaneRoom> rooms_;
  std::optional<Clock::time_point> wake_at_;

  // The path's bandwidth and delay; 0 while unknown.
  double byte_s_ = 0;
  std::chrono::duration<double> round_trip_{0};
  Clock::time_point path_known_until_;
};

}  // namespace gradlane::train
