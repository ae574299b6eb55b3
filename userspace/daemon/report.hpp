// SPDX-License-Identifier: Apache-2.0
// What the daemon tells about itself, as JSON with the stable names of docs/protocol.md.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bpf/datapath.hpp"
#include "policy/config.hpp"

namespace gradlane {

// "full", "fallback" or "off".
const char* level_name(FeatureLevel level);
// [{"name", "level", "why"}]
nlohmann::json features_json(const std::vector<FeatureState>& features);
// [{"lane", "dscp", "tag", "packets", "bytes", "rewritten", "active_senders", "grant_mbit_s"}], urgent first.
nlohmann::json lanes_json(const LanesConfig& config, const std::array<LaneState, GL_LANES>& lanes);
// {NAME: VALUE}
nlohmann::json counts_json(const std::vector<NamedCount>& counts);
// {"source": FILE, "values": {TABLE: {KEY: VALUE}}}, every key of the schema, values as in the file.
nlohmann::json config_json(const Config& config);

}  // namespace gradlane
