// SPDX-License-Identifier: Apache-2.0
// From the configuration of the lanes to what the marker reads.
#pragma once

#include <optional>
#include <string_view>

#include "policy/config.hpp"

namespace gradlane {

// The entry of the map gl_lane_config. With observe, the marker counts and changes nothing.
gl_lane_config make_lane_config(const LanesConfig& lanes, bool observe);

// "urgent", "high", "normal", "bulk"; lane is one of the four.
const char* lane_name(gl_lane lane);
// The lane of that name, none if there is no such lane.
std::optional<gl_lane> lane_by_name(std::string_view name);

}  // namespace gradlane
