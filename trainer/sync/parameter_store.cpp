// SPDX-License-Identifier: Apache-2.0
#include "sync/parameter_store.hpp"

#include <utility>

namespace gradlane::train {

ParameterStore::ParameterStore(Model& model, std::span<const Slice> slices, std::size_t ranks, Update update)
    : slices_(slices),
      has_(ranks, std::vector<bool>(slices.size(), false)),
      missing_(slices.size(), ranks),
      version_(slices.size(), 0),
      update_(std::move(update)) {
  std::size_t total = 0;
  for (const Slice& slice : slices) {
    parameters_.push_back(model.parameters(slice.layer).subspan(slice.offset, slice.floats));
    start_.push_back(total);
    total += slice.floats;
  }
  velocity_.resize(total);
  gradients_.assign(ranks, std::vector<float>(total));
}

std::span<float> ParameterStore::gradient(std::size_t rank, std::uint32_t slice) {
  return std::span(gradients_[rank]).subspan(start_[slice], slices_[slice].floats);
}

std::span<const float> ParameterStore::parameters(std::uint32_t slice) const { return parameters_[slice]; }

bool ParameterStore::arrived(std::size_t rank, std::uint32_t slice) {
  has_[rank][slice] = true;
  if (--missing_[slice] > 0) return false;
  const std::span<float> sum = gradient(0, slice);
  for (std::size_t other = 1; other < gradients_.size(); ++other) {
    const float* const addend = gradient(other, slice).data();
    float* const into = sum.data();
    for (std::size_t index = 0; index < sum.size(); ++index) into[index] += addend[index];
  }
  const std::span<float> velocity = std::span(velocity_).subspan(start_[slice], slices_[slice].floats);
  update_(parameters_[slice], velocity, sum);
  for (auto& rank_has : has_) rank_has[slice] = false;
  missing_[slice] = gradients_.size();
  ++version_[slice];
  return true;
}

}  // namespace gradlane::train
