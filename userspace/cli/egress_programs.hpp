// SPDX-License-Identifier: Apache-2.0
// Which programs sit at the egress of an interface, ours and others'.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane {

struct EgressProgram {
  std::string name;  // "program 17" where the kernel does not tell it to us
  bool ours = false;
};

struct EgressPrograms {
  std::vector<EgressProgram> tcx;    // in the order in which they run; none where the kernel has no tcx
  std::vector<std::string> filters;  // kinds of tc filters at clsact, which run after tcx
};

// An error if there is no such interface. What the kernel does not let us see is left out.
Result<EgressPrograms> egress_programs(const std::string& interface);

}  // namespace gradlane
