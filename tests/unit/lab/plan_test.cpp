// SPDX-License-Identifier: Apache-2.0
#include "lab/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/config.hpp"

namespace gradlane::lab {
namespace {

// Two switches with two hosts each.
Topology tree() {
  const auto topology = parse_topology(R"([defaults]
rate = "200mbit"
host_buffer = "1MB"
offload = false
[[host]]
name = "h"
count = 4
[[switch]]
name = "s1"
[[switch]]
name = "s2"
[[link]]
a = "h1"
b = "s1"
[[link]]
a = "h2"
b = "s1"
[[link]]
a = "h3"
b = "s2"
[[link]]
a = "h4"
b = "s2"
[[link]]
a = "s1"
b = "s2"
ecn_threshold = "32KB"
)",
                                       "tree.toml");
  EXPECT_TRUE(topology) << topology.error().message;
  return *topology;
}

bool any_contains(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(Plan, NamesAndAddressesAreUnique) {
  const Plan plan = make_plan(tree(), "t");
  std::set<std::string> seen;
  for (const auto& node : plan.nodes) {
    EXPECT_TRUE(seen.insert(node.name_space).second);
    EXPECT_TRUE(node.name_space.starts_with("gl-t-"));
    for (const auto& address : node.addresses) EXPECT_TRUE(seen.insert(address).second);
    EXPECT_TRUE(!node.is_host || seen.insert(node.mac).second);
  }
  for (const auto& port : plan.ports) {
    EXPECT_TRUE(seen.insert(port.name_space + " " + port.interface).second);
    EXPECT_LE(port.interface.size(), 15U);
  }
}

TEST(Plan, EveryLinkHasTwoPorts) {
  const Topology topology = tree();
  const Plan plan = make_plan(topology, "t");
  ASSERT_EQ(plan.ports.size(), topology.links.size() * 2);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    EXPECT_EQ(plan.ports[2 * i].node, topology.links[i].a);
    EXPECT_EQ(plan.ports[2 * i + 1].node, topology.links[i].b);
    EXPECT_EQ(plan.ports[2 * i].link, topology.links[i].name);
  }
}

TEST(Plan, OnlySwitchPortsLimitAllLanesTogether) {
  const Plan plan = make_plan(tree(), "t");
  const auto is_host = [](const Port& port) { return port.interface == host_interface; };
  for (const auto& port : plan.ports) {
    EXPECT_EQ(port.rules.limit_bytes, is_host(port) ? 0U : 64U << 10);
    EXPECT_EQ(port.rules.ecn_threshold_bytes, port.link == "s1-s2" ? 32U << 10 : 0U);
    EXPECT_EQ(port.offload, !is_host(port));
    EXPECT_FALSE(port.rules.drop_all);
  }
}

TEST(Plan, APortHasItsRateAndALanePerPriority) {
  const Plan plan = make_plan(tree(), "t");
  const auto& host = plan.nodes[0];
  EXPECT_TRUE(any_contains(host.tc, "root handle 1: tbf rate 200000000bit burst 6250 "));
  for (int lane = 0; lane < 4; ++lane) {
    EXPECT_TRUE(any_contains(host.tc, "classid 10:1" + std::to_string(lane) +
                                          " htb rate 10000000bit ceil 400000000bit prio " +
                                          std::to_string(lane)));
  }
  EXPECT_TRUE(any_contains(host.tc, "bfifo limit 1048576"));
}

TEST(Plan, ADaemonGetsAConfigurationItAccepts) {
  const Plan plan = make_plan(tree(), "t");
  ASSERT_EQ(plan.daemons.size(), 4U);
  for (const auto& daemon : plan.daemons) {
    EXPECT_EQ(daemon.instance, "t-" + daemon.host);
    const auto config = parse_config(daemon.config, "generated");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->link.interfaces, std::vector<std::string>{"eth0"});
    EXPECT_EQ(config->link.rate_bit_s, 200'000'000U);
    EXPECT_EQ(config->link.buffer_bytes, 64U << 10);
  }
}

TEST(Plan, TellsTheHostsBehindALink) {
  const Topology topology = tree();
  EXPECT_EQ(hosts_behind(topology, topology.links[2]), std::vector<std::string>{"h3"});
  auto behind = hosts_behind(topology, topology.links[4]);
  std::sort(behind.begin(), behind.end());
  EXPECT_EQ(behind, (std::vector<std::string>{"h1", "h2"}));
}

TEST(Plan, TheTopologiesThatComeWithTheLabAreRight) {
  for (const auto& [file, hosts] : {std::pair("star-8.toml", 9U), std::pair("pair.toml", 2U)}) {
    const auto topology = load_topology(std::string(SOURCE_FOLDER) + "/userspace/lab/topologies/" + file);
    ASSERT_TRUE(topology) << topology.error().message;
    EXPECT_EQ(topology->hosts.size(), hosts);
    EXPECT_EQ(make_plan(*topology, "lab").daemons.size(), hosts);
  }
}

}  // namespace
}  // namespace gradlane::lab
