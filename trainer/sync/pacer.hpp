// SPDX-License-Identifier: Apache-2.0
// Workers of a test share the processors of one machine, real ones have a device each. The pacer makes each
// layer's forward and backward take as long as on a device of a given speed: the arithmetic is real, only its
// end is put off by sleeping.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace gradlane::train {

class Pacer {
 public:
  // device_ms: of forward and backward over one iteration; one third goes to the forward pass, two thirds to
  // the backward pass, spread over layers by multiply-adds. 0: no pace, and everything here does nothing.
  Pacer(double device_ms, std::span<const double> layer_multiply_adds);

  // The device may go on no earlier than then: what it needed arrived.
  void wait_until(Clock::time_point when);
  // To be called after the arithmetic of a layer: sleeps until the device would be done. The device's own
  // time goes on without gaps, so that a sleep that lasted too long is made up for by the next ones.
  void forward_done(std::size_t layer);
  void backward_done(std::size_t layer);
  // Ends an iteration: true if this host lagged behind the device by more than a twentieth of an iteration,
  // which means that the pace is too fast for it.
  bool end_iteration();

 private:
  void device_done(Clock::duration after);

  Clock::duration iteration_{0};
  std::vector<Clock::duration> forward_;
  std::vector<Clock::duration> backward_;
  Clock::time_point device_;  // when the device has done all that it was given
};

}  // namespace gradlane::train
