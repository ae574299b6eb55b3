// SPDX-License-Identifier: Apache-2.0
// The gradlaned of each host of a lab.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "lab/plan.hpp"
#include "lab/state.hpp"

namespace gradlane::lab {

// Mounts the BPF file system if it is not there, and notes that the lab did so.
Status prepare_bpf_file_system();
// Unmounts it if a lab has mounted it and nothing is in it; for when the last lab is gone.
void release_bpf_file_system();

// Starts all daemons of a plan, each in its host's namespace, and enters them into the state.
Status start_daemons(const Plan& plan, const std::string& executable, State& state);

// Waits until each has printed its line `ready`, limit_s seconds at most; go_on is asked again and again
// whether to.
Status wait_until_ready(const Plan& plan, const State& state, int limit_s,
                        const std::function<Status()>& go_on);

// Whether a daemon has printed its line.
bool is_ready(const std::string& lab, const std::string& host);

// Removes what a daemon has left that did not end by itself: pins, socket, lock, cgroups.
Status clean_after_daemon(const std::string& instance);

}  // namespace gradlane::lab
