// SPDX-License-Identifier: Apache-2.0
#include "policy/schema.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "policy/lane_config.hpp"
#include "policy/units.hpp"

namespace gradlane {
namespace {

using Read = decltype(ConfigKey::read);
using Show = decltype(ConfigKey::show);

// A name that has its value in the configuration: a word of an enumeration.
template <typename T>
using Words = std::vector<std::pair<std::string, T>>;

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// The accessors below are given as `field`: a function from Config& to the field, used for both directions.
template <typename Field>
auto& of(const Config& config, Field field) {
  return field(const_cast<Config&>(config));  // show() only reads; one accessor serves both directions
}

template <typename Field>
Read read_flag(Field field) {
  return [field](const toml::node& node, Config& config) -> const toml::node* {
    const auto value = node.value_exact<bool>();
    if (!value) return &node;
    field(config) = *value;
    return nullptr;
  };
}

template <typename Field>
Show show_flag(Field field) {
  return [field](const Config& config) { return std::string(of(config, field) ? "true" : "false"); };
}

template <typename T, typename Field>
Read read_word(Words<T> words, Field field) {
  return [words, field](const toml::node& node, Config& config) -> const toml::node* {
    const auto text = node.value_exact<std::string>();
    const auto found = std::find_if(words.begin(), words.end(),
                                    [&](const auto& word) { return text && word.first == *text; });
    if (found == words.end()) return &node;
    field(config) = found->second;
    return nullptr;
  };
}

template <typename T, typename Field>
Show show_word(Words<T> words, Field field) {
  return [words, field](const Config& config) {
    for (const auto& [name, value] : words) {
      if (value == of(config, field)) return quoted(name);
    }
    return quoted("");
  };
}

// A quantity with a unit between low and high, both included; `zero` is a word that stands for 0 ("auto").
template <typename Field>
Read read_quantity(Result<std::uint64_t> (*parse)(std::string_view), std::uint64_t low, std::uint64_t high,
                   std::string zero, Field field) {
  return [=](const toml::node& node, Config& config) -> const toml::node* {
    const auto text = node.value_exact<std::string>();
    if (!text) return &node;
    if (!zero.empty() && *text == zero) {
      field(config) = 0;
      return nullptr;
    }
    const auto value = parse(*text);
    if (!value || *value < low || *value > high) return &node;
    field(config) = static_cast<std::remove_reference_t<decltype(field(config))>>(*value);
    return nullptr;
  };
}

template <typename Field>
Show show_quantity(std::string (*format)(std::uint64_t), std::string zero, Field field) {
  return [=](const Config& config) {
    const std::uint64_t value = of(config, field);
    return quoted(value == 0 && !zero.empty() ? zero : format(value));
  };
}

// One whole number per lane, each between low and high.
template <typename Field>
Read read_per_lane(std::int64_t low, std::int64_t high, Field field) {
  return [=](const toml::node& node, Config& config) -> const toml::node* {
    const toml::array* list = node.as_array();
    if (list == nullptr || list->size() != GL_LANES) return &node;
    auto& target = field(config);
    for (std::size_t lane = 0; lane < GL_LANES; ++lane) {
      const toml::node& element = (*list)[lane];
      const auto value = element.value_exact<std::int64_t>();
      if (!value || *value < low || *value > high) return &element;
      target[lane] = static_cast<std::remove_reference_t<decltype(target[lane])>>(*value);
    }
    return nullptr;
  };
}

template <typename Field>
Show show_per_lane(Field field) {
  return [field](const Config& config) {
    std::string text;
    for (const auto value : of(config, field)) text += (text.empty() ? "[" : ", ") + std::to_string(value);
    return text + "]";
  };
}

// What the kernel takes as the name of an interface.
bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() <= 15 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return c > ' ' && c < 0x7f && c != '/' && c != ':' && c != '"' && c != '\\';
         });
}

const toml::node* read_interfaces(const toml::node& node, Config& config) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) return &node;
  config.link.interfaces.clear();
  for (const toml::node& element : *list) {
    const auto name = element.value_exact<std::string>();
    const auto& known = config.link.interfaces;
    if (!name || !is_interface_name(*name) || std::find(known.begin(), known.end(), *name) != known.end()) {
      return &element;
    }
    config.link.interfaces.push_back(*name);
  }
  return nullptr;
}

std::string show_interfaces(const Config& config) {
  std::string text = "[";
  for (const auto& name : config.link.interfaces) text += (text.size() == 1 ? "" : ", ") + quoted(name);
  return text + "]";
}

constexpr double max_minimum_share = 0.25;

const toml::node* read_minimum_share(const toml::node& node, Config& config) {
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value || !(*value >= 0 && *value <= max_minimum_share)) return &node;
  config.lanes.minimum_share = *value;
  return nullptr;
}

std::string show_minimum_share(const Config& config) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), config.lanes.minimum_share).ptr;
  const std::string shown(text, end);
  return shown.find_first_of(".e") == std::string::npos ? shown + ".0" : shown;
}

Words<gl_lane> lane_words() {
  Words<gl_lane> words;
  for (int lane = 0; lane < GL_LANES; ++lane) {
    words.emplace_back(lane_name(static_cast<gl_lane>(lane)), static_cast<gl_lane>(lane));
  }
  return words;
}

std::vector<ConfigKey> make_schema() {
  constexpr std::uint64_t mega = 1000 * 1000;
  const auto observe = [](Config& c) -> auto& { return c.observe_only; };
  const auto log_level = [](Config& c) -> auto& { return c.log_level; };
  const auto rate = [](Config& c) -> auto& { return c.link.rate_bit_s; };
  const auto buffer = [](Config& c) -> auto& { return c.link.buffer_bytes; };
  const auto round_trip = [](Config& c) -> auto& { return c.link.round_trip_us; };
  const auto policy = [](Config& c) -> auto& { return c.lanes.policy; };
  const auto weights = [](Config& c) -> auto& { return c.lanes.weights; };
  const auto priority = [](Config& c) -> auto& { return c.lanes.priority; };
  const auto dscp = [](Config& c) -> auto& { return c.lanes.dscp; };
  const auto queue_priority = [](Config& c) -> auto& { return c.lanes.queue_priority; };
  const auto default_lane = [](Config& c) -> auto& { return c.lanes.default_lane; };
  const auto allow_reserved = [](Config& c) -> auto& { return c.lanes.allow_reserved_dscp; };
  const auto scc = [](Config& c) -> auto& { return c.scc.enabled; };
  const auto floor = [](Config& c) -> auto& { return c.scc.retransmission_floor_us; };
  const auto near = [](Config& c) -> auto& { return c.scc.near_round_trip_us; };

  const Words<bool> modes = {{"full", false}, {"observe", true}};
  const Words<std::string> levels = {{"trace", "trace"}, {"debug", "debug"}, {"info", "info"},
                                     {"warn", "warn"},   {"error", "error"}, {"off", "off"}};
  const Words<LanePolicy> policies = {{"strict", LanePolicy::strict}, {"weighted", LanePolicy::weighted}};
  const std::string four = "a list of 4 whole numbers, from urgent to bulk, each between ";

  return {
      {"daemon", "mode", R"("full" or "observe")",
       "What the daemon does on the host: everything, or only counting.", read_word(modes, observe),
       show_word(modes, observe)},
      {"daemon", "log_level", R"(one of "trace", "debug", "info", "warn", "error", "off")",
       "The least level of the messages that are logged.", read_word(levels, log_level),
       show_word(levels, log_level)},
      {"link", "interfaces", R"(a list of one or more different interface names, such as ["eth0"])",
       "The host's uplinks: where packets of jobs leave it. Required.", read_interfaces, show_interfaces},
      {"link", "rate", R"(a rate from "1mbit" to "800gbit", or "auto")",
       "The rate of the link to the switch; auto takes the interfaces' own speed.",
       read_quantity(parse_rate, mega, 800'000 * mega, "auto", rate),
       show_quantity(format_rate, "auto", rate)},
      {"link", "buffer", R"(a size from "2KB" to "1GB")",
       "The buffer of the switch port towards this host, all lanes together.",
       read_quantity(parse_size, 2 << 10, 1 << 30, "", buffer), show_quantity(format_size, "", buffer)},
      {"link", "round_trip", R"(a time from "1us" to "1s")",
       "The round-trip time inside the data centre while queues are empty.",
       read_quantity(parse_time, 1, mega, "", round_trip), show_quantity(format_time, "", round_trip)},
      {"lanes", "policy", R"("strict" or "weighted")",
       "How lanes share a busy link: in order with a minimum for each, or by weights.",
       read_word(policies, policy), show_word(policies, policy)},
      {"lanes", "minimum_share", "a number between 0 and 0.25",
       "The part of the link that each lower lane keeps under the strict policy.", read_minimum_share,
       show_minimum_share},
      {"lanes", "weights", four + "1 and 255", "The lanes' weights under the weighted policy.",
       read_per_lane(1, 255, weights), show_per_lane(weights)},
      {"lanes", "priority", four + "1 and 6, all different",
       "The tag of each lane: the SO_PRIORITY that programs set on their sockets.",
       read_per_lane(1, 6, priority), show_per_lane(priority)},
      {"lanes", "dscp", four + "0 and 63, all different", "The DSCP of each lane on the wire.",
       read_per_lane(0, 63, dscp), show_per_lane(dscp)},
      {"lanes", "queue_priority", four + "0 and 15",
       "The packet priority of each lane behind the marker, by which the host's queues choose.",
       read_per_lane(0, 15, queue_priority), show_per_lane(queue_priority)},
      {"lanes", "default", R"(one of "urgent", "high", "normal", "bulk")",
       "The lane of a job's sockets that have no tag.", read_word(lane_words(), default_lane),
       show_word(lane_words(), default_lane)},
      {"lanes", "allow_reserved_dscp", "true or false",
       "Confirms that lanes may use the DSCPs 24, 26, 46, 48, which RoCE and voice use.",
       read_flag(allow_reserved), show_flag(allow_reserved)},
      {"scc", "enabled", "true or false", "Whether jobs' sockets get the congestion control SCC.",
       read_flag(scc), show_flag(scc)},
      {"scc", "retransmission_floor", R"(a time from "1ms" to "200ms", or "kernel")",
       "The least retransmission timeout towards near peers; kernel leaves the kernel's own.",
       read_quantity(parse_time, 1000, 200 * 1000, "kernel", floor),
       show_quantity(format_time, "kernel", floor)},
      {"scc", "near_round_trip", R"(a time from "100us" to "1s")",
       "Peers further away than this keep the kernel's congestion control and timeouts.",
       read_quantity(parse_time, 100, mega, "", near), show_quantity(format_time, "", near)},
  };
}

}  // namespace

const std::vector<ConfigKey>& config_schema() {
  static const std::vector<ConfigKey> schema = make_schema();
  return schema;
}

}  // namespace gradlane
