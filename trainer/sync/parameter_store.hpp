// SPDX-License-Identifier: Apache-2.0
// The parameters of a parameter server, slice by slice: collects the gradients of all ranks, adds them in
// rank order, whatever the order they come in, and updates the slice at once. So the result has the same bits
// with every schedule, and without a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/model.hpp"
#include "schedule/slices.hpp"

namespace gradlane::train {

// Changes parameters and their velocity by a gradient that is summed over all samples of all ranks.
using Update = std::function<void(std::span<float> parameters, std::span<float> velocity,
                                  std::span<const float> gradient_sum)>;

class ParameterStore {
 public:
  // Works on the model's own parameters; the model and the slices must live longer.
  ParameterStore(Model& model, std::span<const Slice> slices, std::size_t ranks, Update update);

  // Where the gradient of this rank and slice has to be written to.
  std::span<float> gradient(std::size_t rank, std::uint32_t slice);
  std::span<const float> parameters(std::uint32_t slice) const;
  // How many updates a slice has had: the step whose gradients it waits for.
  std::uint32_t version(std::uint32_t slice) const { return version_[slice]; }
  // Whether this rank's gradient for the slice's next update is there already.
  bool has(std::size_t rank, std::uint32_t slice) const { return has_[rank][slice]; }
  // The gradient of this rank is there. True: it was the last one, the slice is updated.
  bool arrived(std::size_t rank, std::uint32_t slice);

 private:
  std::span<const Slice> slices_;
  std::vector<std::span<float>> parameters_;  // by slice
  std::vector<std::size_t> start_;            // of each slice in the arrays below
  std::vector<float> velocity_;
  std::vector<std::vector<float>> gradients_;  // by rank
  std::vector<std::vector<bool>> has_;         // by rank and slice
  std::vector<std::size_t> missing_;           // ranks, by slice
  std::vector<std::uint32_t> version_;
  Update update_;
};

}  // namespace gradlane::train
