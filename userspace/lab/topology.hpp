// SPDX-License-Identifier: Apache-2.0
// What a topology file says: hosts, switches and the links between them. Pure data and its parser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane::lab {

// [[host]]: one namespace with one interface, eth0.
struct Host {
  std::string name;
  bool daemon = true;  // `up` starts a gradlaned for it
  std::string zone;    // where it stands, for placement; empty: nowhere in particular
};

// [[switch]]: one namespace with a bridge, and a port for each of its links.
struct Switch {
  std::string name;
};

// [[link]]: a cable between a host (always `a`) and a switch, or between two switches.
struct Link {
  std::string name;  // of the host; of a link between switches "A-B"
  std::string a, b;  // names of its ends
  std::uint64_t rate_bit_s = 0;
  std::uint32_t buffer_bytes = 64 << 10;        // of each switch port, all lanes together
  std::uint32_t host_buffer_bytes = 256 << 10;  // of the host's own port, each lane
  std::uint32_t lanes = 4;                      // 1..4
  std::uint32_t ecn_threshold_bytes = 0;        // switch ports set the ECN mark above this; 0: never
  bool offload = true;                          // segmentation offload of the host's interface
};

struct Topology {
  std::string source;  // the file it came from, for messages
  std::string name;    // of the lab, unless the command line gives one
  std::vector<Host> hosts;
  std::vector<Switch> switches;
  std::vector<Link> links;
};

// A lab's name: a letter, then letters, digits and underscores, lower case, 16 at most. No hyphen: namespaces
// are called gl-LAB-HOST, and `down` finds those of a lab by that.
bool is_lab_name(const std::string& name);

// Parses TOML text; source names it in messages ("FILE:LINE: ..."). Refuses unknown keys, values that are not
// allowed, names that clash or that nobody has, hosts with other than one link, cycles, and parts that are
// not connected.
Result<Topology> parse_topology(const std::string& text, const std::string& source);
// The same for a file.
Result<Topology> load_topology(const std::string& path);

}  // namespace gradlane::lab
