// SPDX-License-Identifier: Apache-2.0
// The schema of the configuration: one entry per key. The parser, its error messages, the effective
// configuration that programs print, and the test that holds the documentation to it all read this table.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>
#include <vector>

#include "policy/config.hpp"

namespace gradlane {

struct ConfigKey {
  std::string table;    // "lanes"
  std::string key;      // "dscp"
  std::string allowed;  // completes the sentence "lanes.dscp must be ..."
  std::string meaning;  // one sentence, with its unit
  // Takes the value over into the configuration. Null if it is allowed, else the part of it that is not (the
  // wrong element of a list), whose line the error names.
  std::function<const toml::node*(const toml::node&, Config&)> read;
  // The value in the configuration as TOML.
  std::function<std::string(const Config&)> show;
};

// All keys, in the order of the documentation.
const std::vector<ConfigKey>& config_schema();

}  // namespace gradlane
