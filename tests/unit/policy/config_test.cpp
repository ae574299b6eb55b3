// SPDX-License-Identifier: Apache-2.0
#include "policy/config.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "policy/lane_config.hpp"
#include "policy/schema.hpp"

namespace gradlane {
namespace {

const std::string required = "link.interfaces = [\"eth0\"]\n";

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(SOURCE_FOLDER) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The effective configuration as TOML, key by key: equal text means equal configuration.
std::string shown(const Config& config) {
  std::string text;
  for (const auto& key : config_schema()) text += key.table + "." + key.key + " = " + key.show(config) + "\n";
  return text;
}

Config defaults() {
  Config config;
  config.link.interfaces = {"eth0"};
  return config;
}

TEST(Config, OnlyTheInterfacesAreRequired) {
  const auto config = parse_config(required, "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(shown(*config), shown(defaults()));
  const auto nothing = parse_config("", "f.toml");
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("f.toml: link.interfaces is missing"), std::string::npos);
}

TEST(Config, ShownConfigurationParsesToItself) {
  Config config = defaults();
  const auto once = parse_config(shown(config), "f");
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_EQ(shown(*once), shown(config));

  config.observe_only = true;
  config.log_level = "debug";
  config.link = {{"eth0", "eth1.7"}, 25'000'000'000, 1 << 20, 40};
  config.lanes.policy = LanePolicy::weighted;
  config.lanes.minimum_share = 0;
  config.lanes.weights = {255, 3, 2, 1};
  config.lanes.priority = {1, 2, 3, 4};
  config.lanes.dscp = {46, 10, 0, 8};
  config.lanes.queue_priority = {15, 1, 0, 7};
  config.lanes.default_lane = GL_LANE_BULK;
  config.lanes.allow_reserved_dscp = true;
  config.scc = {false, 0, 20000};
  const auto other = parse_config(shown(config), "f");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(shown(*other), shown(config));
}

TEST(Config, DefaultFileHoldsEveryKeyAtItsDefault) {
  const std::string text = read_file("scripts/gradlaned.toml");
  const auto config = parse_config(text, "gradlaned.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(shown(*config), shown(defaults()));
  for (const auto& key : config_schema()) {
    EXPECT_NE(text.find("\n" + key.key + " = " + key.show(defaults()) + "\n"), std::string::npos) << key.key;
  }
}

// The page and the manual list every key with what is allowed and its default, in the schema's words.
TEST(Config, DocumentationFollowsTheSchema) {
  const std::string page = read_file("docs/configuration.md");
  const std::string manual = read_file("docs/man/gradlaned.toml.5");
  for (const auto& key : config_schema()) {
    const bool has_default = key.key != "interfaces";
    const std::string row = "| `" + key.key + "` | " + key.meaning + " | " + key.allowed + " | " +
                            (has_default ? "`" + key.show(defaults()) + "`" : "none") + " |";
    EXPECT_NE(page.find(row), std::string::npos) << "docs/configuration.md lacks: " << row;
    EXPECT_NE(manual.find(".B " + key.key + "\n"), std::string::npos) << "gradlaned.toml.5 lacks " << key.key;
  }
}

struct Wrong {
  std::string text;
  int line;                           // the error must name it
  std::vector<std::string> mentions;  // and these
};

TEST(Config, ErrorsNameLineKeyAndWhatIsAllowed) {
  const std::vector<Wrong> table = {
      {"\n[lanes]\npolicy = \"strict\"\ndscpp = 3\n",
       4,
       {"unknown key \"lanes.dscpp\"; did you mean \"dscp\"? allowed here: policy, ", "minimum_share"}},
      {"[lanes]\nzebra = 3\n", 2, {"unknown key \"lanes.zebra\"; allowed here: "}},
      {"[lane]\n", 1, {"unknown table \"lane\"; did you mean \"lanes\"?", "daemon, link, lanes, scc"}},
      {"\n\nrate = \"1gbit\"\n", 3, {"unknown key \"rate\"", "daemon, link, lanes, scc"}},
      {"lanes = 4\n", 1, {"lanes must be a table"}},
      {"[[lanes]]\npolicy = \"strict\"\n", 1, {"lanes must be a table"}},
      {"[daemon]\nmode = \"off\"\n", 2, {"daemon.mode must be \"full\" or \"observe\""}},
      {"[daemon]\nmode = true\n", 2, {"daemon.mode must be \"full\" or \"observe\""}},
      {"[daemon]\n\nlog_level = \"loud\"\n", 3, {"daemon.log_level must be one of \"trace\""}},
      {"[link]\ninterfaces = \"eth0\"\n", 2, {"link.interfaces must be a list"}},
      {"[link]\ninterfaces = []\n", 2, {"link.interfaces must be a list"}},
      {"[link]\ninterfaces = [\n\"eth0\",\n\"eth0\"]\n", 4, {"link.interfaces must be", "different"}},
      {"[link]\ninterfaces = [\n\"eth0\",\n\"an/interface\"]\n", 4, {"link.interfaces must be"}},
      {"[link]\ninterfaces = [\"more-than-fifteen\"]\n", 2, {"link.interfaces must be"}},
      {"[link]\nrate = 200\n", 2, {"link.rate must be a rate from \"1mbit\" to \"800gbit\", or \"auto\""}},
      {"[link]\nrate = \"200\"\n", 2, {"link.rate must be"}},
      {"[link]\nrate = \"999kbit\"\n", 2, {"link.rate must be"}},
      {"[link]\nrate = \"801gbit\"\n", 2, {"link.rate must be"}},
      {"[link]\nbuffer = \"2GB\"\n", 2, {"link.buffer must be a size from \"2KB\" to \"1GB\""}},
      {"[link]\nbuffer = \"auto\"\n", 2, {"link.buffer must be"}},
      {"[link]\nround_trip = \"0us\"\n", 2, {"link.round_trip must be a time from \"1us\" to \"1s\""}},
      {"[lanes]\npolicy = \"fair\"\n", 2, {"lanes.policy must be \"strict\" or \"weighted\""}},
      {"[lanes]\nminimum_share = 0.26\n", 2, {"lanes.minimum_share must be a number between 0 and 0.25"}},
      {"[lanes]\nminimum_share = -0.01\n", 2, {"lanes.minimum_share must be"}},
      {"[lanes]\nminimum_share = nan\n", 2, {"lanes.minimum_share must be"}},
      {"[lanes]\nminimum_share = \"5%\"\n", 2, {"lanes.minimum_share must be"}},
      {"[lanes]\nweights = [8, 4, 2]\n", 2, {"lanes.weights must be a list of 4"}},
      {"[lanes]\nweights = [8, 4, 2, 1, 1]\n", 2, {"lanes.weights must be a list of 4"}},
      {"[lanes]\nweights = [8,\n4,\n0,\n1]\n", 4, {"lanes.weights must be", "between 1 and 255"}},
      {"[lanes]\nweights = [256, 4, 2, 1]\n", 2, {"lanes.weights must be"}},
      {"[lanes]\npriority = [7, 4, 2, 1]\n", 2, {"lanes.priority must be", "between 1 and 6"}},
      {"[lanes]\npriority = [6, 4, 2, 0]\n", 2, {"lanes.priority must be"}},
      {"[lanes]\npriority = [6, 4, 2, 2]\n", 2, {"normal and bulk both have 2"}},
      {"[lanes]\ndscp = [64, 22, 14, 0]\n", 2, {"lanes.dscp must be", "between 0 and 63"}},
      {"[lanes]\ndscp = [36, 22, 14, -1]\n", 2, {"lanes.dscp must be"}},
      {"[lanes]\ndscp = [36, 22, 14.0, 0]\n", 2, {"lanes.dscp must be"}},
      {"[lanes]\ndscp = [36, 22, 36, 0]\n", 2, {"urgent and normal both have 36"}},
      {"[lanes]\nqueue_priority = [16, 4, 0, 0]\n", 2, {"lanes.queue_priority must be"}},
      {"[lanes]\ndefault = 2\n",
       2,
       {"lanes.default must be one of \"urgent\", \"high\", \"normal\", \"bulk\""}},
      {"[lanes]\nallow_reserved_dscp = 1\n", 2, {"lanes.allow_reserved_dscp must be true or false"}},
      {"[scc]\nenabled = \"yes\"\n", 2, {"scc.enabled must be true or false"}},
      {"[scc]\nretransmission_floor = \"0.5ms\"\n", 2, {"scc.retransmission_floor must be a time from"}},
      {"[scc]\nretransmission_floor = \"201ms\"\n", 2, {"scc.retransmission_floor must be"}},
      {"[scc]\nnear_round_trip = \"2s\"\n", 2, {"scc.near_round_trip must be a time from"}},
      {"[scc]\nnear_round_trip = \"100us\"\n[link]\nround_trip = \"1ms\"\n", 2, {"link.round_trip"}},
      {"[link]\nround_trip = \"1s\"\n", 2, {"scc.near_round_trip must not be below"}},
      {"[scc]\nenabled = \n", 2, {"this is not TOML"}},
      {"[scc]\nenabled = true\nenabled = true\n", 3, {"this is not TOML"}},
  };
  for (const auto& wrong : table) {
    std::string text = wrong.text;
    const auto config = parse_config(text, "/etc/f.toml");
    ASSERT_FALSE(config) << text;
    std::string message = config.error().message;
    if (message.find("link.interfaces is missing") != std::string::npos) {
      // A check of several keys together comes after the required one: put that at the end of the file.
      text += text.find("[link]") == std::string::npos ? "[link]\ninterfaces = [\"eth0\"]\n"
                                                       : "interfaces = [\"eth0\"]\n";
      const auto complete = parse_config(text, "/etc/f.toml");
      ASSERT_FALSE(complete) << text;
      message = complete.error().message;
    }
    EXPECT_EQ(message.rfind("/etc/f.toml:" + std::to_string(wrong.line) + ": ", 0), 0U) << text << message;
    for (const auto& part : wrong.mentions) EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Config, ReservedDscpNeedsConfirmation) {
  for (const int dscp : {24, 26, 46, 48}) {
    const std::string text = required + "[lanes]\ndscp = [" + std::to_string(dscp) + ", 22, 14, 0]\n";
    const auto refused = parse_config(text, "f");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message.rfind("f:3: ", 0), 0U) << refused.error().message;
    EXPECT_NE(refused.error().message.find("allow_reserved_dscp"), std::string::npos);
    const auto allowed = parse_config(text + "allow_reserved_dscp = true\n", "f");
    EXPECT_TRUE(allowed) << allowed.error().message;
  }
}

TEST(Config, UnreadableFileIsOneSentence) {
  for (const std::string path : {"/nonexistent/gradlaned.toml", "/"}) {
    const auto config = load_config(path);
    ASSERT_FALSE(config);
    EXPECT_NE(config.error().message.find(path), std::string::npos);
    EXPECT_NE(config.error().code, 0) << path;
  }
}

TEST(LaneConfig, EveryTagFindsItsLaneAndNothingElseDoes) {
  LanesConfig lanes;
  lanes.priority = {5, 3, 1, 6};
  const gl_lane_config made = make_lane_config(lanes, false);
  int tagged = 0;
  for (int tag = 0; tag <= GL_TAGS; ++tag) {
    if (made.lane_of_tag[tag] == GL_LANES) continue;
    ++tagged;
    EXPECT_EQ(lanes.priority[made.lane_of_tag[tag]], tag);
  }
  EXPECT_EQ(tagged, static_cast<int>(GL_LANES));
  EXPECT_EQ(made.lane_of_tag[0], GL_LANES) << "0 is what untagged sockets have";
  for (int lane = 0; lane < GL_LANES; ++lane) {
    EXPECT_EQ(made.dscp[lane], lanes.dscp[lane]);
    EXPECT_EQ(made.queue_priority[lane], lanes.queue_priority[lane]);
  }
  EXPECT_EQ(made.default_lane, GL_LANE_NORMAL);
  EXPECT_EQ(made.mark, 1);
  EXPECT_EQ(make_lane_config(lanes, true).mark, 0);
}

TEST(LaneConfig, NamesAndLanesAgree) {
  for (int lane = 0; lane < GL_LANES; ++lane) {
    EXPECT_EQ(lane_by_name(lane_name(static_cast<gl_lane>(lane))), static_cast<gl_lane>(lane));
  }
  EXPECT_FALSE(lane_by_name("Urgent"));
  EXPECT_FALSE(lane_by_name(""));
}

}  // namespace
}  // namespace gradlane
