// SPDX-License-Identifier: Apache-2.0
#include "sync/sender.hpp"

#include <algorithm>

namespace gradlane::train {

namespace {

// How long an estimate of the path is used before the kernel is asked again.
constexpr auto kPathAge = std::chrono::milliseconds(10);
// What this process needs to react when a path runs empty; it is part of the control loop's delay, so the
// bandwidth-delay product covers it.
constexpr std::chrono::duration<double> kReaction = std::chrono::microseconds(1000);
// Bounds of the waits for acknowledgements, which no event announces.
constexpr std::chrono::duration<double> kShortestWait = std::chrono::microseconds(200);
constexpr std::chrono::duration<double> kLongestWait = std::chrono::milliseconds(5);

}  // namespace

Plan Plan::make(const TrainingSetup& setup, std::span<const std::size_t> layer_parameters) {
  Plan plan;
  plan.schedule = *find_schedule(setup.schedule);
  plan.lanes = setup.lanes;
  plan.slices = cut_slices(layer_parameters, setup.slice_bytes);
  plan.lane_of = assign_lanes(plan.slices, plan.lanes);
  std::uint32_t slice = 0;
  for (std::uint32_t layer = 0; layer < layer_parameters.size(); ++layer) {
    plan.first_slice.push_back(slice);
    while (slice < plan.slices.size() && plan.slices[slice].layer == layer) ++slice;
  }
  plan.first_slice.push_back(slice);
  return plan;
}

SocketOptions Plan::socket_options(const TrainingSetup& setup, std::uint8_t lane) const {
  return {.tag = lanes > 1 ? setup.tags[lane] : std::uint8_t{0},
          .congestion = setup.congestion,
          .low_water = gradlane::train::low_water(*this, setup.slice_bytes)};
}

std::uint32_t low_water(const Plan& plan, std::uint32_t slice_bytes) {
  // The kernel reports room below half of it: a quarter of a slice is then left to send while this process
  // wakes up, and a more urgent slice finds little more than one slice ahead of itself.
  return plan.schedule.by_urgency ? std::max<std::uint32_t>(slice_bytes / 2, 4096) : 0;
}

Sender::Sender(const Plan& plan, MessageType type, std::uint32_t slice_bytes)
    : plan_(plan),
      type_(type),
      low_water_(low_water(plan, slice_bytes)),
      ready_(plan.slices.size()),
      connections_(plan.lanes, nullptr),
      wants_write_(plan.lanes, false),
      rooms_(plan.lanes) {
  std::vector<SendItem> items(plan.slices.size());
  for (std::size_t index = 0; index < items.size(); ++index) {
    items[index] = {.lane = plan.lane_of[index], .bytes = plan.slices[index].bytes()};
  }
  order_ = plan.schedule.by_urgency ? make_urgency_order(std::move(items), plan.lanes)
                                    : make_arrival_order(std::move(items), plan.lanes);
}

void Sender::add(std::uint32_t slice, std::uint32_t step, std::span<const std::byte> data) {
  ready_[slice] = {.step = step, .data = data};
  order_->add(slice);
}

bool Sender::idle() const {
  return order_->empty() && std::none_of(connections_.begin(), connections_.end(),
                                         [](const Connection* connection) { return connection->pending(); });
}

void Sender::start(std::uint32_t slice) {
  const Ready& ready = ready_[slice];
  connections_[plan_.lane_of[slice]]->send_slice({.type = type_, .slice = slice, .step = ready.step},
                                                 ready.data);
}

Status Sender::pump(Clock::time_point now) {
  wake_at_.reset();
  Status status = plan_.schedule.by_urgency ? pump_by_urgency(now) : pump_by_arrival(now);
  if (!status) return status;
  for (std::size_t lane = 0; lane < plan_.lanes; ++lane) {
    const bool full = order_->waiting(lane) && rooms_[lane].unsent * 2 >= low_water_ && low_water_ != 0;
    wants_write_[lane] = connections_[lane]->pending() || full;
  }
  return {};
}

Status Sender::pump_by_arrival(Clock::time_point now) {
  std::fill(rooms_.begin(), rooms_.end(), LaneRoom{.room = true});
  while (const auto slice = order_->next(rooms_, now)) start(*slice);
  for (Connection* connection : connections_) {
    if (Status status = connection->flush(); !status) return status;
  }
  return {};
}

Status Sender::pump_by_urgency(Clock::time_point now) {
  for (;;) {
    std::size_t outstanding = 0;
    for (std::size_t lane = 0; lane < plan_.lanes; ++lane) {
      Connection& connection = *connections_[lane];
      if (connection.pending()) {
        if (Status status = connection.flush(); !status) return status;
      }
      const SendBacklog backlog = send_backlog(connection.fd());
      outstanding += backlog.outstanding;
      rooms_[lane] = {.room = !connection.pending() && backlog.unsent * 2 < low_water_,
                      .unfinished = connection.pending(),
                      .unsent = backlog.unsent};
    }
    if (order_->empty()) return {};
    if (over_budget(outstanding, now)) return {};
    const auto slice = order_->next(rooms_, now);
    if (!slice) {
      wake_at_ = order_->ask_again();
      return {};
    }
    start(*slice);
  }
}

bool Sender::over_budget(std::size_t outstanding, Clock::time_point now) {
  refresh_path(now);
  if (byte_s_ == 0) return false;
  // A slice may start while at most the bandwidth-delay product is under way: with it, that plus one slice.
  const double surplus = static_cast<double>(outstanding) - byte_s_ * (round_trip_ + kReaction).count();
  if (surplus <= 0) return false;
  const auto wait = std::clamp(std::chrono::duration<double>(surplus / byte_s_), kShortestWait, kLongestWait);
  wake_at_ = now + std::chrono::duration_cast<Clock::duration>(wait);
  return true;
}

void Sender::refresh_path(Clock::time_point now) {
  if (now < path_known_until_) return;
  path_known_until_ = now + kPathAge;
  byte_s_ = 0;
  for (const Connection* connection : connections_) {
    const PathEstimate estimate = path_estimate(connection->fd());
    // Lanes share the path: the fastest one saw most of it.
    if (static_cast<double>(estimate.byte_s) <= byte_s_) continue;
    byte_s_ = static_cast<double>(estimate.byte_s);
    round_trip_ = estimate.round_trip;
  }
}

}  // namespace gradlane::train
