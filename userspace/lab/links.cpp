// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lab/lab.hpp"
#include "lab/port.hpp"

namespace gradlane::lab {
namespace {

// Cuts or repairs: whatever it was before, it is `broken` afterwards.
Status change_link(const std::string& lab, const std::string& name, std::optional<Broken> broken) {
  const auto lock = lock_lab(lab);
  if (!lock) return lock.error();
  auto state = read_state(lab);
  if (!state) return state.error();
  const auto link = find_link(state->topology, name);
  if (!link) return link.error();
  auto [a, b] = ports_of(make_plan(state->topology, lab), *link);
  a.rules.drop_all = b.rules.drop_all = broken == Broken::drop;
  // Only the end at the switch goes down: a host would lose its IPv6 addresses.
  Status done = set_interface(b, broken != Broken::down);
  if (done) done = attach_port_programs({a, b});
  if (done && broken != Broken::down) done = wait_for_carrier({a, b});
  if (!done) return done;
  if (broken) {
    state->broken[link->name] = *broken;
  } else {
    state->broken.erase(link->name);
  }
  return write_state(*state);
}

}  // namespace

Status break_link(const std::string& lab, const std::string& link, Broken how) {
  return change_link(lab, link, how);
}

Status repair_link(const std::string& lab, const std::string& link) {
  return change_link(lab, link, std::nullopt);
}

Result<Link> find_link(const Topology& topology, const std::string& name) {
  std::string list;
  for (const auto& link : topology.links) {
    if (link.name == name) return link;
    list += (list.empty() ? "" : ", ") + link.name;
  }
  return make_error("there is no link \"" + name + "\" in the lab: choose one of " + list);
}

std::pair<Port, Port> ports_of(const Plan& plan, const Link& link) {
  const auto a = std::find_if(plan.ports.begin(), plan.ports.end(),
                              [&](const Port& port) { return port.link == link.name; });
  return {*a, *std::next(a)};
}

}  // namespace gradlane::lab
