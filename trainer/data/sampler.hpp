// SPDX-License-Identifier: Apache-2.0
// Which samples a worker sees at which step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/result.hpp"

namespace gradlane::train {

// Each epoch goes through a new permutation of all samples in global batches of workers * batch; rank r takes
// the r-th piece of each. So N workers with batch b see together, in rank order, exactly what one worker with
// batch N * b sees. Samples that do not fill a global batch at the end of an epoch are left out of it.
class BatchSampler {
 public:
  // samples: size of the dataset, at most 2^32; seed: the same for all ranks; batch: samples per worker and
  // step. Fails if a global batch is empty or larger than the dataset.
  static Result<BatchSampler> create(std::size_t samples, std::uint64_t seed, std::size_t workers,
                                     std::size_t batch);

  // Indices (0..samples-1) that this rank (0..workers-1) uses at this step (from 0 on); depends on the
  // arguments and those of create() alone. Steps in order are cheap; a change of epoch shuffles once.
  std::vector<std::uint32_t> indices(std::uint64_t step, std::size_t rank);

  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }

 private:
  BatchSampler(std::size_t samples, std::uint64_t seed, std::size_t workers, std::size_t batch);
  void shuffle(std::uint64_t epoch);

  std::vector<std::uint32_t> order_;
  std::uint64_t epoch_ = std::numeric_limits<std::uint64_t>::max();  // that order_ belongs to
  std::uint64_t seed_;
  std::size_t workers_;
  std::size_t batch_;
  std::uint64_t steps_per_epoch_;
};

}  // namespace gradlane::train
