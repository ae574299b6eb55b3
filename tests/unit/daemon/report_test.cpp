// SPDX-License-Identifier: Apache-2.0
#include "daemon/report.hpp"

#include <gtest/gtest.h>

#include "policy/schema.hpp"

namespace gradlane {
namespace {

TEST(Report, ConfigurationHasEveryKeyWithItsType) {
  Config config;
  config.source = "/etc/x.toml";
  config.link.interfaces = {"eth0", "eth1"};
  const auto report = config_json(config);
  EXPECT_EQ(report["source"], "/etc/x.toml");
  const auto& values = report["values"];
  for (const auto& key : config_schema()) EXPECT_TRUE(values[key.table].contains(key.key)) << key.key;
  EXPECT_EQ(values["link"]["interfaces"], (nlohmann::json{"eth0", "eth1"}));
  EXPECT_EQ(values["link"]["rate"], "auto");
  EXPECT_EQ(values["lanes"]["dscp"], (nlohmann::json{36, 22, 14, 0}));
  EXPECT_EQ(values["lanes"]["minimum_share"], 0.05);
  EXPECT_EQ(values["scc"]["enabled"], true);
}

TEST(Report, LanesGoFromUrgentToBulkWithTheirCodes) {
  std::array<LaneState, GL_LANES> lanes{};
  lanes[GL_LANE_HIGH] = {1, 2, 3, 4, 12'500'000};
  const auto report = lanes_json({}, lanes);
  ASSERT_EQ(report.size(), static_cast<std::size_t>(GL_LANES));
  EXPECT_EQ(report[0]["lane"], "urgent");
  EXPECT_EQ(report[3]["lane"], "bulk");
  const nlohmann::json high = {{"lane", "high"},      {"dscp", 22},           {"tag", 4},
                               {"packets", 1},        {"bytes", 2},           {"rewritten", 3},
                               {"active_senders", 4}, {"grant_mbit_s", 100.0}};
  EXPECT_EQ(report[1], high);
}

TEST(Report, FeaturesSayWhy) {
  const auto report =
      features_json({{"marker", FeatureLevel::full, ""}, {"scc", FeatureLevel::off, "old kernel"}});
  EXPECT_EQ(report[0]["level"], "full");
  EXPECT_EQ(report[1], (nlohmann::json{{"name", "scc"}, {"level", "off"}, {"why", "old kernel"}}));
}

}  // namespace
}  // namespace gradlane
