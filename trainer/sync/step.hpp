// SPDX-License-Identifier: Apache-2.0
// One iteration over a model, layer by layer: the same with and without a network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "model/model.hpp"
#include "schedule/schedule.hpp"
#include "sync/pacer.hpp"
#include "sync/wire.hpp"

namespace gradlane::train {

// What a worker trains: a model and its data.
class Task {
 public:
  virtual ~Task() = default;
  virtual Model& model() = 0;
  // Gives the model the batch of this step and rank.
  virtual Status prepare(std::uint32_t step, std::uint32_t rank) = 0;
  // The first failure of the backend; results since then are void.
  virtual Status status() = 0;
};

// The parameters of each layer of a model, and the multiply-adds.
std::vector<std::size_t> layer_parameters(const Model& model);
std::vector<double> layer_multiply_adds(const Model& model);
// A fingerprint of the bits of all parameters: where two models have the same, their parameters are the same
// but for an accident of 64 bits.
std::uint64_t fingerprint(Model& model);

// What surrounds the arithmetic of one iteration.
struct StepHooks {
  // Before a layer's forward: returns when its parameters were complete; false ends the step.
  std::function<bool(std::size_t layer, Clock::time_point& complete)> wait_for_parameters;
  // After the last forward and before the first backward: all parameters are of the same step.
  std::function<void()> between_passes;
  // A layer's gradient is complete.
  std::function<void(std::size_t layer)> gradient_ready;
};

// Forward and backward over the batch that was prepared. Fills in loss, samples right, processor time and
// whether the pace was missed. False if a hook ended the step.
bool run_step(Model& model, Pacer& pacer, const StepHooks& hooks, StepReport& report);

}  // namespace gradlane::train
