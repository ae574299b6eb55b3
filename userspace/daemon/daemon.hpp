// SPDX-License-Identifier: Apache-2.0
// The life of one daemon: from the checks of the host to the last file removed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bpf/datapath.hpp"
#include "core/result.hpp"
#include "policy/config.hpp"

namespace gradlane {

// How a daemon gets its kernel side: Datapath::start, or something else in tests.
using StartDatapath = std::function<Result<std::unique_ptr<Datapath>>(
    const Config& config, const std::string& instance, const std::string& cgroup)>;

struct DaemonOptions {
  std::string instance = "default";
  std::string folder;        // of lock and socket
  std::string cgroup_mount;  // of cgroup v2
  StartDatapath start_datapath;
  std::function<void()> ready;  // called once, when requests are answered
};

// Takes the instance's lock, makes its cgroup, starts the data path, answers on the control socket until
// SIGTERM, SIGINT or the command "stop", and takes all that away again. The error says what could not be
// started, and then nothing is left behind; or what could not be taken away.
Status run_daemon(const Config& config, const DaemonOptions& options);

}  // namespace gradlane
