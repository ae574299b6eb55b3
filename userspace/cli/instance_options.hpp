// SPDX-License-Identifier: Apache-2.0
// The options of every command that is about one instance.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "daemon/names.hpp"

namespace gradlane {

// A name that no instance can have is a mistake of usage.
inline std::string instance_name_problem(const std::string& name) {
  const Status valid = check_instance_name(name);
  return valid ? std::string() : valid.error().message;
}

struct InstanceOptions {
  std::string instance = "default";
  bool json = false;
};

// --instance and --json; they live as long as the command's callback holds them.
inline std::shared_ptr<InstanceOptions> add_instance_options(CLI::App& command) {
  auto options = std::make_shared<InstanceOptions>();
  command.add_option("--instance", options->instance, "Name of the instance (default: default)")
      ->check(instance_name_problem);
  command.add_flag("--json", options->json, "Print JSON");
  return options;
}

}  // namespace gradlane
