// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "lab/commands/commands.hpp"
#include "lab/daemons.hpp"
#include "lab/lab.hpp"
#include "lab/netns.hpp"
#include "lab/port.hpp"
#include "policy/units.hpp"

namespace gradlane::lab {
namespace {

using nlohmann::json;

json host_as_json(const State& state, const Plan& plan, const Host& host) {
  const auto node = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                                 [&](const Node& candidate) { return candidate.name == host.name; });
  json entry = {{"name", host.name}, {"namespace", node->name_space}, {"interface", host_interface},
                {"mac", node->mac},  {"addresses", json::array()},    {"zone", host.zone},
                {"daemon", nullptr}};
  for (const auto& address : node->addresses)
    entry["addresses"].push_back(address.substr(0, address.find('/')));
  if (const auto daemon = state.daemons.find(host.name); daemon != state.daemons.end()) {
    const auto living = processes_in({node->name_space});
    const bool running = std::find(living.begin(), living.end(), daemon->second) != living.end();
    entry["daemon"] = {{"instance", instance_of(state.lab, host.name)},
                       {"pid", daemon->second},
                       {"running", running},
                       {"ready", running && is_ready(state.lab, host.name)},
                       {"config", daemon_config(state.lab, host.name)},
                       {"log", daemon_log(state.lab, host.name)}};
  }
  return entry;
}

json link_as_json(const State& state, const Plan& plan, const Link& link) {
  const auto [a, b] = ports_of(plan, link);
  const auto broken = state.broken.find(link.name);
  return {{"name", link.name},
          {"a", link.a},
          {"b", link.b},
          {"port_a", {{"namespace", a.name_space}, {"interface", a.interface}}},
          {"port_b", {{"namespace", b.name_space}, {"interface", b.interface}}},
          {"rate_bit_s", link.rate_bit_s},
          {"buffer_bytes", link.buffer_bytes},
          {"host_buffer_bytes", link.host_buffer_bytes},
          {"lanes", link.lanes},
          {"ecn_threshold_bytes", link.ecn_threshold_bytes},
          {"up", has_carrier(a) && has_carrier(b)},
          {"drops_all", broken != state.broken.end() && broken->second == Broken::drop}};
}

json lab_as_json(const State& state) {
  const Plan plan = make_plan(state.topology, state.lab);
  json lab = {{"name", state.lab},      {"topology", state.topology.source}, {"complete", state.complete},
              {"hosts", json::array()}, {"switches", json::array()},         {"links", json::array()}};
  for (const auto& host : state.topology.hosts) lab["hosts"].push_back(host_as_json(state, plan, host));
  for (const auto& node : state.topology.switches) {
    lab["switches"].push_back({{"name", node.name}, {"namespace", namespace_of(state.lab, node.name)}});
  }
  for (const auto& link : state.topology.links) lab["links"].push_back(link_as_json(state, plan, link));
  return lab;
}

void print_lab(const json& lab) {
  std::printf("lab %s%s\n", lab["name"].get<std::string>().c_str(),
              lab["complete"] ? "" : " (not complete: take it down)");
  for (const auto& host : lab["hosts"]) {
    std::string daemon = "no daemon";
    if (const auto& entry = host["daemon"]; !entry.is_null()) {
      daemon = "gradlaned " + std::to_string(entry["pid"].get<pid_t>()) +
               (entry["ready"]     ? " ready"
                : entry["running"] ? " starting"
                                   : " DEAD");
    }
    const auto& addresses = host["addresses"];
    std::printf("  host   %-15s %-12s %-11s %s\n", host["name"].get<std::string>().c_str(),
                addresses[0].get<std::string>().c_str(), addresses[1].get<std::string>().c_str(),
                daemon.c_str());
  }
  for (const auto& node : lab["switches"])
    std::printf("  switch %s\n", node["name"].get<std::string>().c_str());
  for (const auto& link : lab["links"]) {
    std::printf("  link   %-15s to %-12s %s, buffer %s, %d lanes, %s\n",
                link["name"].get<std::string>().c_str(), link["b"].get<std::string>().c_str(),
                format_rate(link["rate_bit_s"]).c_str(), format_size(link["buffer_bytes"]).c_str(),
                link["lanes"].get<int>(),
                link["drops_all"] ? "up, but DROPS ALL"
                : link["up"]      ? "up"
                                  : "DOWN");
  }
}

}  // namespace

void add_list(CLI::App& app) {
  auto* command = app.add_subcommand("list", "Show the labs on this machine");
  struct Options {
    std::string name;
    bool as_json = false;
  };
  const auto options = std::make_shared<Options>();
  command->add_option("--name", options->name, "Only this lab");
  command->add_flag("--json", options->as_json, "As a JSON array of labs");
  command->callback([options] {
    json labs = json::array();
    for (const auto& name : options->name.empty() ? all_labs() : std::vector{options->name}) {
      const auto state = read_state(name);
      if (state) {
        labs.push_back(lab_as_json(*state));
      } else if (!options->name.empty()) {
        finish(state.error());
      } else {
        labs.push_back({{"name", name},
                        {"complete", false},
                        {"hosts", json::array()},
                        {"switches", json::array()},
                        {"links", json::array()}});
      }
    }
    if (options->as_json) {
      std::printf("%s\n", labs.dump(1).c_str());
    } else {
      for (const auto& lab : labs) print_lab(lab);
      if (labs.empty()) std::printf("there is no lab\n");
    }
  });
}

}  // namespace gradlane::lab
