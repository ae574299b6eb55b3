// SPDX-License-Identifier: Apache-2.0
// What is measured of a training: reports of all ranks put together, step by step and block by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sync/wire.hpp"

namespace gradlane::train {

// A run of iterations without a pause between them. The workers begin it with all parameters at hand and end
// it with all parameters at hand.
//
// The time of an iteration on one rank goes from the begin of its forward pass to the begin of the next one;
// the last of a block ends when the last of its parameters arrived. So the times of a block add up to the
// time from the first forward pass to the last parameter: a schedule that starts a forward pass early gains
// nothing by that alone, for what is left to be sent shows in the next iteration or in the last.
struct BlockResult {
  std::uint32_t first_step = 0;
  std::uint32_t steps = 0;
  std::vector<double> iteration_ms;      // by step: median over ranks
  std::vector<double> iteration_ms_max;  // by step: of the slowest rank
  std::vector<double> loss;              // by step: per sample, summed in rank order
  std::vector<double> accuracy;          // by step: of the training batch, 0..1
  std::uint64_t gradient_bytes = 0;      // received by the server, with message headers
  std::uint64_t parameter_bytes = 0;     // sent by the server, with message headers
  double arithmetic_ms = 0;   // processor time of forward and backward: mean of all iterations and ranks
  std::uint32_t overran = 0;  // iterations of any rank in which arithmetic did not keep the device's pace
};

// Collects the reports of one block.
class BlockCollector {
 public:
  BlockCollector(std::size_t ranks, std::uint32_t first_step, std::uint32_t steps);

  // The report of this rank for the next of its steps, in order.
  void add(std::size_t rank, const StepReport& report);
  std::uint32_t first_step() const { return first_step_; }
  // The step that this rank's next report is about.
  std::uint32_t next_step(std::size_t rank) const;
  // Steps that all ranks have reported.
  std::uint32_t complete_steps() const;
  bool complete() const { return complete_steps() == steps_; }
  // Of a step that all ranks have reported, counted from the block's first one.
  double loss(std::uint32_t index) const;
  // Of a complete block; the bytes are left to the caller.
  BlockResult result() const;

 private:
  std::uint32_t first_step_;
  std::uint32_t steps_;
  std::vector<std::vector<StepReport>> reports_;  // by rank
};

}  // namespace gradlane::train
