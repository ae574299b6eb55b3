// SPDX-License-Identifier: Apache-2.0
// The backend that is always there: Eigen on one core. The same inputs give the same bits on the same
// machine.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.hpp"

namespace gradlane::train {

// Which of the compiled instruction sets to use.
enum class CpuLevel : std::uint8_t {
  kBaseline,  // what every machine of this architecture has
  kBest,      // the best that this machine has
};

std::unique_ptr<Backend> make_cpu_backend(CpuLevel level);

}  // namespace gradlane::train
