// SPDX-License-Identifier: Apache-2.0
// The ports of a lab: their program and what ip and tc cannot set.
#pragma once

#include <vector>

#include "core/result.hpp"
#include "lab/plan.hpp"

namespace gradlane::lab {

// Attaches to each port's HTB qdisc its own instance of the program (bpf/lab/gl_lab_port.bpf.c), or replaces
// the one there. The kernel keeps it for as long as the qdisc is there.
Status attach_port_programs(const std::vector<Port>& ports);

// Switches the segmentation offload of a port off (generic and TCP) where the port says so.
Status apply_offload(const Port& port);

// Sets an interface up or down, from inside its namespace.
Status set_interface(const Port& port, bool up);

// Whether the interface is up and its peer too. False if it is not there.
bool has_carrier(const Port& port);

// Waits until all have a carrier, 10 s at most: the kernel tells it with a delay.
Status wait_for_carrier(const std::vector<Port>& ports);

}  // namespace gradlane::lab
