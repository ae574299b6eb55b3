// SPDX-License-Identifier: Apache-2.0
// What is known of a lab between two commands: /run/gradlane-lab/LAB/state.json. It is written before
// anything is made, so that `down` knows of everything, whenever `up` ended.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "lab/topology.hpp"

namespace gradlane::lab {

// Holds a folder per lab.
inline constexpr const char* state_root = "/run/gradlane-lab";

enum class Broken { down, drop };

struct State {
  std::string lab;
  Topology topology;
  bool complete = false;                 // `up` came to its end
  std::map<std::string, pid_t> daemons;  // by host
  std::map<std::string, Broken> broken;  // links, by name
};

// /run/gradlane-lab/LAB.
std::string state_folder(const std::string& lab);
// Log and configuration of a host's daemon, in the lab's folder.
std::string daemon_log(const std::string& lab, const std::string& host);
std::string daemon_config(const std::string& lab, const std::string& host);

// Makes the lab's folder; false if there is one.
Result<bool> make_state_folder(const std::string& lab);

// Locks a lab that exists against other commands that change it, for as long as the result lives. Waits 10 s.
// Programs started by run_program() hold the lock, too.
// Without a folder there is nothing to lock, and the result is empty.
Result<Fd> lock_lab(const std::string& lab);

// Writes the state, all or nothing.
Status write_state(const State& state);
// Reads it; an error says that the lab is not there and which are.
Result<State> read_state(const std::string& lab);

// The labs that have a folder or a namespace.
std::vector<std::string> all_labs();

// Makes a file or replaces it, all or nothing.
Status replace_file(const std::string& path, const std::string& text);

}  // namespace gradlane::lab
