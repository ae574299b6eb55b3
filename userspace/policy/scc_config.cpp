// SPDX-License-Identifier: Apache-2.0
#include "policy/scc_config.hpp"

#include <algorithm>
#include <cmath>

namespace gradlane {

gl_scc_config make_scc_config(const Config& config, std::uint64_t rate_bit_s) {
  // Of 1538 bytes that a full Ethernet frame takes on the wire, with preamble and gap, 1448 are TCP payload.
  constexpr std::uint64_t kPayload = 1448, kOnWire = 1538;

  gl_scc_config settings{};
  settings.payload_rate = rate_bit_s / 8 * kPayload / kOnWire;
  settings.buffer = config.link.buffer_bytes;
  settings.round_trip_us = config.link.round_trip_us;
  settings.floor_us = config.scc.retransmission_floor_us;
  settings.near_us = config.scc.near_round_trip_us;
  settings.minimum_share = static_cast<std::uint32_t>(std::lround(config.lanes.minimum_share * 1024));
  std::copy(config.lanes.weights.begin(), config.lanes.weights.end(), settings.weight);
  settings.weighted = config.lanes.policy == LanePolicy::weighted ? 1 : 0;
  settings.enabled = config.scc.enabled ? 1 : 0;
  std::fill(std::begin(settings.lane_of_tag), std::end(settings.lane_of_tag), GL_LANES);
  for (std::uint8_t lane = 0; lane < GL_LANES; lane++) {
    settings.lane_of_tag[config.lanes.priority[lane]] = lane;
  }
  std::fill(std::begin(settings.lane_of_dscp), std::end(settings.lane_of_dscp), GL_LANE_BULK);
  for (std::uint8_t lane = 0; lane < GL_LANES; lane++) settings.lane_of_dscp[config.lanes.dscp[lane]] = lane;
  return settings;
}

}  // namespace gradlane
