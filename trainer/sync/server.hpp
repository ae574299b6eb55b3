// SPDX-License-Identifier: Apache-2.0
// The parameter server: one thread and an event loop. Keeps the parameters, adds the gradients of all workers
// in rank order, slice by slice, and sends each updated slice back at once.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "model/network.hpp"
#include "sync/commands.hpp"
#include "sync/observer.hpp"
#include "sync/parameter_store.hpp"
#include "sync/setup.hpp"
#include "sync/socket.hpp"

namespace gradlane::train {

struct ServerOptions {
  Address listen;
  TrainingSetup setup;            // has passed check_setup()
  std::deque<Command> commands;   // what to do once all workers are there
  int command_fd = -1;            // where further commands come from; -1: nowhere
  std::string byte_log;           // file for the byte log, see byte_log.hpp; empty: none
  std::chrono::seconds wait{60};  // how long to wait for the workers
};

// What the server trains with.
struct ServerTask {
  Model& model;  // whose parameters are the first ones
  Update update;
  // Accuracy on the test data with the model's current parameters.
  std::function<Result<Evaluation>()> evaluate;
};

// How a program ended: well, or by a signal (its number).
struct Ending {
  int signal = 0;
};

// Runs until the commands say finish, a signal comes on signal_fd (see poller.hpp), or something fails; the
// error is one sentence. The workers are told in each case.
Result<Ending> run_server(const ServerOptions& options, ServerTask task, Observer& observer, int signal_fd);

}  // namespace gradlane::train
