// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent.
#pragma once

#include <cstddef>
#include <span>

namespace gradlane::train {

// velocity = momentum * velocity + gradient_sum * (1 / samples); parameters -= learning_rate * velocity. All
// three have the same length; samples (> 0) is how many gradients were summed up. The same arguments give the
// same bits, on any machine and from any call site.
void sgd_momentum(std::span<float> parameters, std::span<float> velocity, std::span<const float> gradient_sum,
                  std::size_t samples, float learning_rate, float momentum);

}  // namespace gradlane::train
