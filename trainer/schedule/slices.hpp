// SPDX-License-Identifier: Apache-2.0
// How parameters are cut into slices, and which lane each slice belongs to. Pure functions: all hosts compute
// the same table from the same layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradlane::train {

// A part of one layer's parameters: the unit of sending, of summing and of preemption.
struct Slice {
  std::uint32_t layer = 0;
  std::size_t offset = 0;  // first float within the layer
  std::size_t floats = 0;  // at least 1

  std::size_t bytes() const { return floats * sizeof(float); }
  bool operator==(const Slice&) const = default;
};

// Cuts layers, given by their number of parameters in the order of first use in the forward pass, into slices
// of at most slice_bytes (at least 4). The index of a slice is its rank in that order: the smaller, the
// sooner the next forward pass needs it. Layers without parameters have no slice.
std::vector<Slice> cut_slices(std::span<const std::size_t> layer_parameters, std::size_t slice_bytes);

// The lane of each slice, by slack: the order of first use is cut into runs of comparable bytes, the first
// run is lane 0 (urgent), the last one lanes - 1 (bulk); slices of one big layer may fall into several lanes.
// A lane differs from its even share by no more than the biggest slice as long as no lane would stay empty;
// with at least as many slices as lanes none is empty. lanes is 1 or more.
std::vector<std::uint8_t> assign_lanes(std::span<const Slice> slices, std::size_t lanes);

}  // namespace gradlane::train
