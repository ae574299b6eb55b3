// SPDX-License-Identifier: Apache-2.0
// A worker: one thread computes, one sends and receives. Gradients are written to the sockets straight from
// the model's memory, parameters are read straight into it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "sync/server.hpp"
#include "sync/setup.hpp"
#include "sync/socket.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

struct WorkerOptions {
  Address server;
  std::uint32_t rank = 0;
  std::string byte_log;                    // file for the byte log, see byte_log.hpp; empty: none
  std::chrono::seconds connect_limit{10};  // how long to try to reach the server
};

// Makes what is to be trained, once the server has told the settings.
using MakeTask = std::function<Result<std::unique_ptr<Task>>(const TrainingSetup& setup)>;

// Runs until the server says that the training is over, a signal comes on signal_fd (see poller.hpp), or
// something fails; the error is one sentence.
Result<Ending> run_worker(const WorkerOptions& options, const MakeTask& make_task, int signal_fd);

}  // namespace gradlane::train
