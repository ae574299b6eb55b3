// SPDX-License-Identifier: Apache-2.0
#include "policy/lane_config.hpp"

namespace gradlane {
namespace {

constexpr std::array<const char*, GL_LANES> lane_names = {"urgent", "high", "normal", "bulk"};

}  // namespace

gl_lane_config make_lane_config(const LanesConfig& lanes, bool observe) {
  gl_lane_config made{};
  for (auto& lane : made.lane_of_tag) lane = GL_LANES;
  for (int lane = 0; lane < GL_LANES; ++lane) {
    made.lane_of_tag[lanes.priority[lane]] = static_cast<std::uint8_t>(lane);
    made.dscp[lane] = lanes.dscp[lane];
    made.queue_priority[lane] = lanes.queue_priority[lane];
  }
  made.default_lane = static_cast<std::uint8_t>(lanes.default_lane);
  made.mark = observe ? 0 : 1;
  return made;
}

const char* lane_name(gl_lane lane) { return lane_names.at(lane); }

std::optional<gl_lane> lane_by_name(std::string_view name) {
  for (int lane = 0; lane < GL_LANES; ++lane) {
    if (name == lane_names[lane]) return static_cast<gl_lane>(lane);
  }
  return std::nullopt;
}

}  // namespace gradlane
