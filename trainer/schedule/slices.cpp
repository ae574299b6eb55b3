// SPDX-License-Identifier: Apache-2.0
#include "schedule/slices.hpp"

#include <algorithm>

namespace gradlane::train {

std::vector<Slice> cut_slices(std::span<const std::size_t> layer_parameters, std::size_t slice_bytes) {
  const std::size_t most = std::max<std::size_t>(1, slice_bytes / sizeof(float));
  std::vector<Slice> slices;
  for (std::size_t layer = 0; layer < layer_parameters.size(); ++layer) {
    for (std::size_t offset = 0; offset < layer_parameters[layer]; offset += most) {
      slices.push_back({.layer = static_cast<std::uint32_t>(layer),
                        .offset = offset,
                        .floats = std::min(most, layer_parameters[layer] - offset)});
    }
  }
  return slices;
}

std::vector<std::uint8_t> assign_lanes(std::span<const Slice> slices, std::size_t lanes) {
  std::size_t total = 0;
  for (const Slice& slice : slices) total += slice.bytes();
  if (total == 0) return {};
  std::vector<std::uint8_t> lane_of(slices.size());
  std::size_t before = 0;
  std::size_t previous = 0;
  for (std::size_t index = 0; index < slices.size(); ++index) {
    // The run that the middle of the slice falls into.
    const std::size_t middle_twice = 2 * before + slices[index].bytes();
    std::size_t lane = std::min(lanes - 1, middle_twice * lanes / (2 * total));
    // No lane is skipped, and enough slices are left for the lanes that are still empty.
    const std::size_t left = slices.size() - index;
    const std::size_t least = left < lanes ? lanes - left : 0;
    lane = std::max(lane, slices.size() >= lanes ? least : 0);
    lane = std::min(lane, index == 0 ? 0 : previous + 1);
    lane_of[index] = static_cast<std::uint8_t>(lane);
    previous = lane;
    before += slices[index].bytes();
  }
  return lane_of;
}

}  // namespace gradlane::train
