// SPDX-License-Identifier: Apache-2.0
// links: gl_policy
// Any bytes as a configuration file: an error or a configuration that shows as TOML which parses again.
#include <cstdlib>
#include <string>

#include "policy/config.hpp"
#include "policy/schema.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = gradlane::parse_config(text, "fuzz");
  if (!config) return config.error().message.empty() ? std::abort(), 0 : 0;
  std::string shown;
  for (const auto& key : gradlane::config_schema()) {
    shown += key.table + "." + key.key + " = " + key.show(*config) + "\n";
  }
  if (!gradlane::parse_config(shown, "shown")) std::abort();
  return 0;
}
