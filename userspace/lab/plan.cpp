// SPDX-License-Identifier: Apache-2.0
#include "lab/plan.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "policy/units.hpp"

namespace gradlane::lab {
namespace {

// The bridge of a switch; no host or switch can be called so, hence no port either.
constexpr const char* bridge = "sw_bridge";

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), "%x", value);
  return text;
}

// What TBF may send at once. Timers are late by tens of microseconds, and what does not fit is lost rate;
// packets that are longer get split, so that a switch never takes or drops 64 KB as one. At least four full
// frames.
std::uint64_t burst_bytes(std::uint64_t rate_bit_s) {
  constexpr std::uint64_t four_frames = 6250;
  return std::max(four_frames, rate_bit_s / 8 * 128 / 1'000'000);
}

// How long a lane is taken for active: as long as the link needs for eight full buffers, which is longer than
// the gaps of a connection that runs.
std::uint64_t active_ns(const Link& link) {
  return 8ULL * link.buffer_bytes * 8 * 1'000'000'000 / link.rate_bit_s;
}

// The input of tc that makes one port: TBF has the rate, HTB below it decides who goes next. HTB's own
// ceiling is twice the rate, so that it never waits itself: below a guaranteed rate a class is served first,
// above it the classes borrow in the order of prio.
std::vector<std::string> port_qdiscs(const std::string& interface, const Link& link,
                                     std::uint64_t lane_limit) {
  const std::string device = " dev " + interface + " ";
  const std::string ceiling = number(link.rate_bit_s * 2) + "bit";
  const std::string floor = number(link.rate_bit_s / 20) + "bit";
  const std::uint64_t burst = burst_bytes(link.rate_bit_s);
  const std::string htb = hex(htb_major) + ":";
  const std::string deep = number(burst * 4);
  std::vector<std::string> lines;
  lines.push_back("qdisc add" + device + "root handle 1: tbf rate " + number(link.rate_bit_s) + "bit burst " +
                  number(burst) + " limit " + number(lane_limit));
  lines.push_back("qdisc add" + device + "parent 1:1 handle " + htb + " htb default " +
                  hex(first_lane_class + link.lanes - 1));
  lines.push_back("class add" + device + "parent " + htb + " classid " + htb + "1 htb rate " + ceiling +
                  " ceil " + ceiling + " burst " + deep + " cburst " + deep + " quantum 1514");
  for (std::uint32_t lane = 0; lane < link.lanes; ++lane) {
    const std::string id = htb + hex(first_lane_class + lane);
    lines.push_back("class add" + device + "parent " + htb + "1 classid " + id + " htb rate " + floor +
                    " ceil " + ceiling + " prio " + number(lane) + " burst 3k cburst " + deep +
                    " quantum 1514");
    lines.push_back("qdisc add" + device + "parent " + id + " handle " + hex(first_queue_major + lane) +
                    ": bfifo limit " + number(lane_limit));
  }
  return lines;
}

Node make_node(const std::string& lab, const std::string& name, bool is_host) {
  Node node;
  node.name = name;
  node.name_space = namespace_of(lab, name);
  node.is_host = is_host;
  node.ip.push_back("link set lo up");
  if (is_host) {
    // Addresses are usable at once, without a search for duplicates, and no router is looked for; no
    // connection starts from what an earlier one has learnt.
    node.sysctls = {{"net/ipv6/conf/all/accept_dad", "0"},
                    {"net/ipv6/conf/default/accept_dad", "0"},
                    {"net/ipv6/conf/default/accept_ra", "0"},
                    {"net/ipv6/conf/default/router_solicitations", "0"},
                    {"net/ipv4/tcp_no_metrics_save", "1"}};
  } else {
    // A switch forwards frames and has nothing to say itself.
    node.sysctls = {{"net/ipv6/conf/default/disable_ipv6", "1"}};
  }
  return node;
}

}  // namespace

std::string namespace_of(const std::string& lab, const std::string& node) { return "gl-" + lab + "-" + node; }

std::string instance_of(const std::string& lab, const std::string& host) { return lab + "-" + host; }

Plan make_plan(const Topology& topology, const std::string& lab) {
  Plan plan;
  plan.lab = lab;
  std::map<std::string, std::size_t> index;
  for (const auto& host : topology.hosts) {
    Node node = make_node(lab, host.name, true);
    const std::size_t i = plan.nodes.size() + 1;
    node.addresses = {"10.77.0." + number(i) + "/24", "fd77::" + hex(static_cast<std::uint32_t>(i)) + "/64"};
    char mac[18];
    std::snprintf(mac, sizeof(mac), "02:67:6c:00:00:%02zx", i & 0xff);
    node.mac = mac;
    index[host.name] = plan.nodes.size();
    plan.nodes.push_back(std::move(node));
  }
  for (const auto& name : topology.switches) {
    Node node = make_node(lab, name.name, false);
    node.ip.push_back(std::string("link add name ") + bridge + " type bridge stp_state 0 mcast_snooping 0");
    node.ip.push_back(std::string("link set ") + bridge + " up");
    index[name.name] = plan.nodes.size();
    plan.nodes.push_back(std::move(node));
  }
  for (const auto& node : plan.nodes) plan.namespaces.push_back("netns add " + node.name_space);

  for (const auto& link : topology.links) {
    Node& a = plan.nodes[index.at(link.a)];
    Node& b = plan.nodes[index.at(link.b)];
    const std::string interface_a = a.is_host ? host_interface : link.b;
    const std::string& interface_b = link.a;
    plan.links.push_back("link add name " + interface_a + (a.is_host ? " address " + a.mac : "") + " netns " +
                         a.name_space + " numtxqueues 1 numrxqueues 1 type veth peer name " + interface_b +
                         " netns " + b.name_space + " numtxqueues 1 numrxqueues 1");
    const auto add_port = [&](Node& node, const std::string& interface) {
      const bool host = node.is_host;
      // At a switch the program on the port has the one limit of all lanes; the queues only need to be
      // longer.
      const std::uint64_t lane_limit = host ? link.host_buffer_bytes : 2ULL * link.buffer_bytes;
      const auto lines = port_qdiscs(interface, link, lane_limit);
      node.tc.insert(node.tc.end(), lines.begin(), lines.end());
      if (!host) node.ip.push_back("link set " + interface + " master " + bridge);
      node.ip.push_back("link set " + interface + " up");
      for (const auto& address : node.addresses) {
        node.ip.push_back("address add " + address + " dev " + interface);
      }
      Port port{node.name, node.name_space, interface, link.name, {}, !host || link.offload};
      port.rules.lanes = link.lanes;
      port.rules.limit_bytes = host ? 0 : link.buffer_bytes;
      port.rules.active_ns = host ? 0 : active_ns(link);
      port.rules.ecn_threshold_bytes = host ? 0 : link.ecn_threshold_bytes;
      plan.ports.push_back(std::move(port));
    };
    add_port(a, interface_a);
    add_port(b, interface_b);
  }

  for (const auto& host : topology.hosts) {
    if (!host.daemon) continue;
    const auto link = std::find_if(topology.links.begin(), topology.links.end(),
                                   [&](const Link& candidate) { return candidate.a == host.name; });
    Daemon daemon{host.name, instance_of(lab, host.name), {}};
    // Every host of a lab is near, however long a busy or emulated machine takes to answer.
    daemon.config = std::string("[link]\ninterfaces = [\"") + host_interface + "\"]\nrate = \"" +
                    format_rate(link->rate_bit_s) + "\"\nbuffer = \"" + format_size(link->buffer_bytes) +
                    "\"\n[scc]\nnear_round_trip = \"1s\"\n";
    plan.daemons.push_back(std::move(daemon));
  }
  return plan;
}

std::vector<std::string> hosts_behind(const Topology& topology, const Link& link) {
  std::vector<std::string> reached = {link.a};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const auto& other : topology.links) {
      if (other.name == link.name) continue;
      for (const auto& [from, to] : {std::pair(other.a, other.b), std::pair(other.b, other.a)}) {
        if (from == reached[i] && std::find(reached.begin(), reached.end(), to) == reached.end()) {
          reached.push_back(to);
        }
      }
    }
  }
  std::erase_if(reached, [&](const std::string& name) {
    return std::none_of(topology.hosts.begin(), topology.hosts.end(),
                        [&](const Host& host) { return host.name == name; });
  });
  return reached;
}

}  // namespace gradlane::lab
