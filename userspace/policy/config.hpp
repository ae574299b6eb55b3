// SPDX-License-Identifier: Apache-2.0
// The configuration of one instance: what an administrator can set, with its defaults. Pure data; the parser
// (parse_config) checks it against the schema and names file and line in its errors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "gradlane/abi/lane.h"

namespace gradlane {

// How lanes share a link when all are busy.
enum class LanePolicy {
  strict,    // in order; each lower lane keeps minimum_share
  weighted,  // by weights
};

// [link]: the host's own attachment to the network.
struct LinkConfig {
  std::vector<std::string> interfaces;    // uplinks; required, at least one
  std::uint64_t rate_bit_s = 0;           // 0: auto, from the interfaces' speed
  std::uint32_t buffer_bytes = 64 << 10;  // of the switch port towards this host
  std::uint32_t round_trip_us = 100;      // round-trip time inside the data centre without queues
};

// [lanes]: the code space, one entry per lane from urgent to bulk.
struct LanesConfig {
  LanePolicy policy = LanePolicy::strict;
  double minimum_share = 0.05;                                       // of each lower lane, 0..0.25
  std::array<std::uint32_t, GL_LANES> weights = {8, 4, 2, 1};        // 1..255
  std::array<std::uint8_t, GL_LANES> priority = {6, 4, 2, 1};        // SO_PRIORITY: the tag, 1..6
  std::array<std::uint8_t, GL_LANES> dscp = {36, 22, 14, 0};         // 0..63
  std::array<std::uint8_t, GL_LANES> queue_priority = {6, 4, 0, 0};  // skb->priority behind the marker
  gl_lane default_lane = GL_LANE_NORMAL;                             // of a job's untagged sockets
  bool allow_reserved_dscp = false;  // confirms DSCPs that RoCE and voice use: 24, 26, 46, 48
};

// [scc]: the congestion control.
struct SccConfig {
  bool enabled = true;
  // Retransmission floor inside the data centre; 0 leaves the kernel's.
  std::uint32_t retransmission_floor_us = 8000;
  // Peers further away than this keep the kernel's floor and their own congestion control.
  std::uint32_t near_round_trip_us = 5000;
};

struct Config {
  std::string source;         // the file it came from, for messages
  bool observe_only = false;  // [daemon] mode = "observe": load only what counts
  std::string log_level = "info";
  LinkConfig link;
  LanesConfig lanes;
  SccConfig scc;
};

// Parses TOML text; source names it in messages ("FILE:LINE: KEY ...: what is allowed"). Unknown keys and
// tables, wrong types and values out of range are refused.
Result<Config> parse_config(const std::string& text, const std::string& source);
// The same for a file.
Result<Config> load_config(const std::string& path);

}  // namespace gradlane
