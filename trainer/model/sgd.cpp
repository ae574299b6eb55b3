// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction to fused multiply-adds (see CMakeLists.txt), which round differently.
#include "model/sgd.hpp"

namespace gradlane::train {

void sgd_momentum(std::span<float> parameters, std::span<float> velocity, std::span<const float> gradient_sum,
                  std::size_t samples, float learning_rate, float momentum) {
  const float scale = 1.0F / static_cast<float>(samples);
  float* const p = parameters.data();
  float* const v = velocity.data();
  const float* const g = gradient_sum.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float step = momentum * v[i] + g[i] * scale;
    v[i] = step;
    p[i] -= learning_rate * step;
  }
}

}  // namespace gradlane::train
