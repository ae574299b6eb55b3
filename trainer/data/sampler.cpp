// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "data/random.hpp"

namespace gradlane::train {

Result<BatchSampler> BatchSampler::create(std::size_t samples, std::uint64_t seed, std::size_t workers,
                                          std::size_t batch) {
  // Divided, not multiplied: the product could overflow.
  if (workers == 0 || batch == 0 || batch > samples / workers) {
    return make_error(std::to_string(workers) + " workers with " + std::to_string(batch) +
                      " samples each do not fit a dataset of " + std::to_string(samples) +
                      " samples: use at least one of both and fewer samples per worker");
  }
  return BatchSampler(samples, seed, workers, batch);
}

BatchSampler::BatchSampler(std::size_t samples, std::uint64_t seed, std::size_t workers, std::size_t batch)
    : order_(samples),
      seed_(seed),
      workers_(workers),
      batch_(batch),
      steps_per_epoch_(samples / (workers * batch)) {}

std::vector<std::uint32_t> BatchSampler::indices(std::uint64_t step, std::size_t rank) {
  const std::uint64_t epoch = step / steps_per_epoch_;
  if (epoch != epoch_) shuffle(epoch);
  const std::uint64_t first = ((step % steps_per_epoch_) * workers_ + rank) * batch_;
  const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(batch_)};
}

void BatchSampler::shuffle(std::uint64_t epoch) {
  // Fisher and Yates, from the identity each time, so that an epoch does not depend on those before it.
  std::iota(order_.begin(), order_.end(), 0U);
  Random random(seed_, epoch);
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  epoch_ = epoch;
}

}  // namespace gradlane::train
