// SPDX-License-Identifier: Apache-2.0
#include "sync/pacer.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

namespace gradlane::train {

namespace {

void sleep_until(Clock::time_point when) {
  // steady_clock is CLOCK_MONOTONIC.
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  const timespec target{.tv_sec = since / 1'000'000'000, .tv_nsec = since % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nullptr) == EINTR) {
  }
}

}  // namespace

Pacer::Pacer(double device_ms, std::span<const double> layer_multiply_adds) {
  if (device_ms <= 0) return;
  const std::chrono::duration<double, std::milli> iteration(device_ms);
  const double total = std::accumulate(layer_multiply_adds.begin(), layer_multiply_adds.end(), 0.0);
  iteration_ = std::chrono::duration_cast<Clock::duration>(iteration);
  for (const double multiply_adds : layer_multiply_adds) {
    const double share = total > 0 ? multiply_adds / total : 0;
    forward_.push_back(std::chrono::duration_cast<Clock::duration>(iteration * share / 3));
    backward_.push_back(std::chrono::duration_cast<Clock::duration>(iteration * share * 2 / 3));
  }
}

void Pacer::wait_until(Clock::time_point when) { device_ = std::max(device_, when); }

void Pacer::forward_done(std::size_t layer) {
  if (!forward_.empty()) device_done(forward_[layer]);
}

void Pacer::backward_done(std::size_t layer) {
  if (!backward_.empty()) device_done(backward_[layer]);
}

void Pacer::device_done(Clock::duration after) {
  device_ += after;
  if (after > Clock::duration::zero() && Clock::now() < device_) sleep_until(device_);
}

bool Pacer::end_iteration() {
  if (iteration_ == Clock::duration::zero()) return false;
  const auto now = Clock::now();
  const bool overran = now - device_ > iteration_ / 20;
  // Lag is not carried over: it would let the next iteration run faster than the device.
  device_ = std::max(device_, now);
  return overran;
}

}  // namespace gradlane::train
