// SPDX-License-Identifier: Apache-2.0
// From a topology to what has to be done on this machine: names, addresses and the input of ip and tc. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lab/topology.hpp"

namespace gradlane::lab {

// The interface of every host.
inline constexpr const char* host_interface = "eth0";
// Of a port: its HTB qdisc, the class and the queue of its first lane, as bpf/lab/gl_lab_port.bpf.c knows
// them.
inline constexpr std::uint32_t htb_major = 0x10;
inline constexpr std::uint32_t first_lane_class = 0x10;
inline constexpr std::uint32_t first_queue_major = 0x20;

// What the program on a port enforces (bpf/lab/gl_lab_port.bpf.c).
struct PortRules {
  std::uint32_t lanes = 4;
  std::uint32_t limit_bytes = 0;          // all lanes together; 0: each lane's queue has its own limit
  std::uint64_t active_ns = 0;            // a lane takes part in sharing the buffer so long after a packet
  std::uint32_t ecn_threshold_bytes = 0;  // of each lane; 0: no marks
  bool drop_all = false;
};

// One end of a link.
struct Port {
  std::string node;  // whose end it is
  std::string name_space;
  std::string interface;
  std::string link;  // its name
  PortRules rules;
  bool offload = true;
};

// A host or switch.
struct Node {
  std::string name;
  std::string name_space;
  bool is_host = false;
  // Input of `ip -n NAMESPACE -batch`, once all links exist, and of `tc -n NAMESPACE -batch`.
  std::vector<std::string> ip, tc;
  // Below /proc/sys/, and what to write there; interfaces start with what is the default when they are made.
  std::vector<std::pair<std::string, std::string>> sysctls;
  // Of hosts: addresses with prefix lengths, IPv4 then IPv6, and the Ethernet address.
  std::vector<std::string> addresses;
  std::string mac;
};

// A gradlaned to start.
struct Daemon {
  std::string host;
  std::string instance;  // LAB-HOST
  std::string config;    // the text of its configuration file
};

struct Plan {
  std::string lab;
  std::vector<std::string> namespaces;  // input of `ip -batch` that makes all namespaces
  std::vector<std::string> links;       // the same for the links, once the namespaces have their sysctls
  std::vector<Node> nodes;              // hosts in the order of the file, then switches
  std::vector<Port> ports;              // two for each link: of its end a, of its end b
  std::vector<Daemon> daemons;
};

// gl-LAB-NODE.
std::string namespace_of(const std::string& lab, const std::string& node);
// The name of a host's instance of gradlaned: LAB-HOST.
std::string instance_of(const std::string& lab, const std::string& host);

// The plan of a topology as a lab of this name.
Plan make_plan(const Topology& topology, const std::string& lab);

// The hosts on the side of a link's end `a`; the one host where `a` is a host.
std::vector<std::string> hosts_behind(const Topology& topology, const Link& link);

}  // namespace gradlane::lab
