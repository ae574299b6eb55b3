// SPDX-License-Identifier: Apache-2.0
// The life of a lab: up, down, broken links.
#pragma once

#include <optional>
#include <string>

#include "core/result.hpp"
#include "lab/plan.hpp"
#include "lab/state.hpp"

namespace gradlane::lab {

struct UpOptions {
  std::string file;     // the topology
  std::string name;     // of the lab; empty: the file's, or "lab"
  bool daemons = true;  // start a gradlaned for each host that wants one
  std::string daemon;   // its executable; empty: next to ours
  int wait_s = 10;      // how long the daemons may take to be ready, in seconds
};

// Makes a lab; refuses if there is one of this name. A failure, SIGINT or SIGTERM on the way takes down what
// is there already. Returns the lab's name.
Result<std::string> bring_up(const UpOptions& options);

// Takes a lab down, in whatever state it is: ends the processes in its namespaces (SIGTERM, after 10 s
// SIGKILL), removes namespaces, cgroups, what its daemons have left, and the folder. No error if there is
// none of it.
Status take_down(const std::string& lab);

// Cuts a link: the port goes down, or (Broken::drop) stays up and silently loses all packets both ways.
Status break_link(const std::string& lab, const std::string& link, Broken how);
// Makes it whole again.
Status repair_link(const std::string& lab, const std::string& link);

// The link of this name, or an error with all names.
Result<Link> find_link(const Topology& topology, const std::string& name);
// The ports of a link: that of its end a, that of its end b.
std::pair<Port, Port> ports_of(const Plan& plan, const Link& link);

}  // namespace gradlane::lab
