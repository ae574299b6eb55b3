// SPDX-License-Identifier: Apache-2.0
#include "lab/topology.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace gradlane::lab {
namespace {

const std::string star = R"([defaults]
rate = "200mbit"
[[host]]
name = "server"
[[host]]
name = "worker"
count = 3
daemon = false
zone = "east"
[[switch]]
name = "switch"
[[link]]
a = "switch"
b = "server"
rate = "1gbit"
buffer = "128KB"
lanes = 1
[[link]]
a = "worker"
b = "switch"
)";

TEST(Topology, ReadsHostsSwitchesAndLinks) {
  const auto topology = parse_topology(star, "star.toml");
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->hosts.size(), 4U);
  EXPECT_EQ(topology->hosts[0].name, "server");
  EXPECT_TRUE(topology->hosts[0].daemon);
  EXPECT_EQ(topology->hosts[3].name, "worker3");
  EXPECT_EQ(topology->hosts[3].zone, "east");
  EXPECT_FALSE(topology->hosts[3].daemon);
  ASSERT_EQ(topology->links.size(), 4U);
  // The host is always end a, whatever the order in the file.
  EXPECT_EQ(topology->links[0].a, "server");
  EXPECT_EQ(topology->links[0].b, "switch");
  EXPECT_EQ(topology->links[0].name, "server");
  EXPECT_EQ(topology->links[0].rate_bit_s, 1'000'000'000U);
  EXPECT_EQ(topology->links[0].buffer_bytes, 128U << 10);
  EXPECT_EQ(topology->links[0].lanes, 1U);
  EXPECT_EQ(topology->links[1].name, "worker1");
  EXPECT_EQ(topology->links[1].rate_bit_s, 200'000'000U);
  EXPECT_EQ(topology->links[1].lanes, 4U);
}

TEST(Topology, TakesOneHostOutOfSeveral) {
  const auto topology = parse_topology(R"([defaults]
rate = "10mbit"
[[host]]
name = "h"
count = 2
[[switch]]
name = "s1"
[[switch]]
name = "s2"
[[link]]
a = "h1"
b = "s1"
[[link]]
a = "h2"
b = "s2"
[[link]]
a = "s1"
b = "s2"
)",
                                       "tree.toml");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->links[2].name, "s1-s2");
}

struct Refused {
  std::string what;      // of the star, this
  std::string by;        // replaced by this
  std::string sentence;  // is refused with a message that starts so
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.what << " -> " << refused.by; }

class TopologyRefuses : public testing::TestWithParam<Refused> {};

TEST_P(TopologyRefuses, WithFileLineAndWhatIsAllowed) {
  const auto& [what, by, sentence] = GetParam();
  std::string text = star;
  const auto at = text.find(what);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, what.size(), by);
  const auto topology = parse_topology(text, "star.toml");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().message.substr(0, sentence.size()), sentence) << topology.error().message;
  EXPECT_EQ(topology.error().message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Each, TopologyRefuses,
    testing::Values(
        Refused{"[defaults]", "[default]", "star.toml:1: there is no \"default\" here: allowed are [lab]"},
        Refused{"rate = \"200mbit\"", "speed = 1",
                "star.toml:2: unknown key \"speed\": [defaults] takes buffer, ecn_threshold"},
        Refused{"\"200mbit\"", "\"200mbps\"",
                "star.toml:2: rate must be a rate from \"1mbit\" to \"100gbit\""},
        Refused{"\"200mbit\"", "200", "star.toml:2: rate must be a rate"},
        Refused{"\"200mbit\"", "\"1kbit\"", "star.toml:2: rate must be a rate"},
        Refused{"rate = \"200mbit\"", "lanes = 5", "star.toml:2: lanes must be a whole number from 1 to 4"},
        Refused{"rate = \"200mbit\"", "offload = 1", "star.toml:2: offload must be true or false"},
        Refused{"rate = \"200mbit\"", "", "star.toml:18: [[link]] needs a rate"},
        Refused{"\"server\"", "\"Server\"", "star.toml:4: \"Server\" cannot be a name"},
        Refused{"\"server\"", "\"worker2\"", "star.toml:6: the name \"worker2\" is taken already"},
        Refused{"\"server\"", "\"lo\"", "star.toml:4: \"lo\" cannot be a name"},
        Refused{"name = \"server\"", "", "star.toml:3: [[host]] needs a name"},
        Refused{"count = 3", "count = 0", "star.toml:7: count must be a whole number from 1 to 254"},
        Refused{"count = 3", "count = 254", "star.toml:5: there are more than 254 hosts"},
        Refused{"[[switch]]", "[switch]", "star.toml:10: \"switch\" must be a list of tables"},
        Refused{"a = \"worker\"", "a = \"workers\"",
                "star.toml:19: nothing is called \"workers\": a must be one of server, worker1, worker2"},
        Refused{"a = \"worker\"", "a = \"server\"", "star.toml:18: host \"server\" has a link already"},
        Refused{"a = \"worker\"", "a = \"worker1\"", "star.toml: \"worker2\" is not connected to \"server\""},
        Refused{"b = \"switch\"", "b = \"server\"", "star.toml:18: \"worker\" and \"server\" are both hosts"},
        Refused{"b = \"switch\"", "b = 7", "star.toml:20: b must be the name"},
        Refused{"buffer = \"128KB\"", "buffer = \"1KB\"", "star.toml:16: buffer must be a size from \"4KB\""},
        Refused{"buffer = \"128KB\"", "ecn_threshold = \"64KB\"",
                "star.toml:12: ecn_threshold must be below"},
        Refused{"[[link]]", "[[link]", "star.toml:12: this is not TOML: "}));

TEST(Topology, RefusesCycles) {
  const auto topology = parse_topology(star + R"([[switch]]
name = "other"
[[link]]
a = "other"
b = "switch"
[[link]]
a = "switch"
b = "other"
)",
                                       "star.toml");
  ASSERT_FALSE(topology);
  EXPECT_NE(
      topology.error().message.find("star.toml:26: the link from \"switch\" to \"other\" closes a cycle"),
      std::string::npos)
      << topology.error().message;
}

TEST(Topology, RefusesAHostAlone) {
  const auto topology = parse_topology("[[host]]\nname = \"h\"\n", "alone.toml");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().message, "alone.toml: there is no link: add a [[link]]");
}

TEST(Topology, RefusesAFileThatIsNotThere) {
  const auto topology = load_topology("/does/not/exist.toml");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code, ENOENT);
}

TEST(LabName, HasNoHyphenSinceNamespacesAreFoundByIt) {
  EXPECT_TRUE(is_lab_name("lab_2"));
  for (const char* name : {"", "a-b", "Lab", "2lab", "a/b", "seventeen_letters"})
    EXPECT_FALSE(is_lab_name(name)) << name;
}

}  // namespace
}  // namespace gradlane::lab
