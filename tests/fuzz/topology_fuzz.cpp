// SPDX-License-Identifier: Apache-2.0
// links: gl_lab_pure
// Any bytes as a topology file: a sentence, or a topology whose plan is whole.
#include <cstdlib>
#include <string>

#include "lab/plan.hpp"
#include "lab/topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto topology = gradlane::lab::parse_topology(text, "fuzz");
  if (!topology) {
    if (topology.error().message.empty()) std::abort();
    return 0;
  }
  const auto plan = gradlane::lab::make_plan(*topology, "fuzz");
  if (plan.ports.size() != 2 * topology->links.size()) std::abort();
  // A tree has one link less than nodes.
  if (plan.nodes.size() != topology->links.size() + 1) std::abort();
  for (const auto& link : topology->links) {
    if (gradlane::lab::hosts_behind(*topology, link).size() > topology->hosts.size()) std::abort();
  }
  return 0;
}
