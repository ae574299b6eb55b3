// SPDX-License-Identifier: Apache-2.0
// Bringing the marker to the egress of an interface: by tcx where the kernel has it, else as a clsact filter.
#pragma once

#include <bpf/libbpf.h>

#include <string>

#include "core/result.hpp"

namespace gradlane {

// Attaches program to the egress of interface; by a link pinned in folder, or by a filter with a priority and
// handle of our own, which replaces the one that a predecessor left. clsact is made if it is missing and is
// never deleted, for others may use it.
Status attach_egress(const std::string& interface, const bpf_program* program, const std::string& folder,
                     bool tcx);
// Removes our filter from the egress of interface, if it is there and runs the program with this id.
void detach_egress_filter(const std::string& interface, unsigned program_id);

// Speed of an interface in bits per second, 0 if it does not say.
unsigned long long interface_speed(const std::string& interface);

}  // namespace gradlane
