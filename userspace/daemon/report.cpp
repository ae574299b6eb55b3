// SPDX-License-Identifier: Apache-2.0
#include "daemon/report.hpp"

#include <sstream>

#include "policy/lane_config.hpp"
#include "policy/schema.hpp"

namespace gradlane {

using nlohmann::json;

const char* level_name(FeatureLevel level) {
  switch (level) {
    case FeatureLevel::full:
      return "full";
    case FeatureLevel::fallback:
      return "fallback";
    case FeatureLevel::off:
      break;
  }
  return "off";
}

json features_json(const std::vector<FeatureState>& features) {
  json list = json::array();
  for (const auto& feature : features) {
    list.push_back({{"name", feature.name}, {"level", level_name(feature.level)}, {"why", feature.why}});
  }
  return list;
}

json lanes_json(const LanesConfig& config, const std::array<LaneState, GL_LANES>& lanes) {
  json list = json::array();
  for (int lane = 0; lane < GL_LANES; ++lane) {
    const LaneState& state = lanes[lane];
    list.push_back({{"lane", lane_name(static_cast<gl_lane>(lane))},
                    {"dscp", config.dscp[lane]},
                    {"tag", config.priority[lane]},
                    {"packets", state.packets},
                    {"bytes", state.bytes},
                    {"rewritten", state.rewritten},
                    {"active_senders", state.active_senders},
                    {"grant_mbit_s", static_cast<double>(state.grant_byte_s) * 8 / 1e6}});
  }
  return list;
}

json counts_json(const std::vector<NamedCount>& counts) {
  json object = json::object();
  for (const auto& count : counts) object[count.name] = count.value;
  return object;
}

json config_json(const Config& config) {
  // By way of TOML text: the schema shows each value as the file would have it.
  std::string text;
  for (const auto& key : config_schema()) text += key.table + "." + key.key + " = " + key.show(config) + "\n";
  std::ostringstream values;
  values << toml::json_formatter(toml::parse(text));
  return {{"source", config.source}, {"values", json::parse(values.str())}};
}

}  // namespace gradlane
