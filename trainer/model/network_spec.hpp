// SPDX-License-Identifier: Apache-2.0
// The text that describes a network.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace gradlane::train {

// The network of the demonstration: 64,586 parameters and about 1.5 million multiply-adds of a forward pass
// over one 28x28 picture, so that eight workers compute about as long as they communicate at 200 Mbit/s.
inline constexpr const char* kDefaultNetwork =
    "conv 16, relu, pool, conv 32, relu, pool, conv 32, relu, dense 32, relu, dense 10";

enum class LayerKind : std::uint8_t {
  kConvolution,  // "conv CHANNELS": 3x3 window, step 1, padding 1
  kMaxPool,      // "pool": 2x2 window, step 2
  kDense,        // "dense OUTPUTS": every input to every output
  kRelu,         // "relu"
};

struct LayerSpec {
  LayerKind kind = LayerKind::kRelu;
  int outputs = 0;  // channels of a convolution, outputs of a dense layer, else 0; 1..4096

  bool operator==(const LayerSpec&) const = default;
};

// Reads layers separated by commas, at most 64. Errors name the layer and what is allowed there.
Result<std::vector<LayerSpec>> parse_network(std::string_view text);

}  // namespace gradlane::train
