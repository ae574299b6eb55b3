// SPDX-License-Identifier: Apache-2.0
// From the configuration to what the socket policy and SCC read in the kernel.
#pragma once

#include <cstdint>

#include "gradlane/abi/scc.h"
#include "policy/config.hpp"

namespace gradlane {

// The settings for a link of rate_bit_s (0: unknown, then no payload rate is set and nothing is granted).
gl_scc_config make_scc_config(const Config& config, std::uint64_t rate_bit_s);

}  // namespace gradlane
