// SPDX-License-Identifier: Apache-2.0
// The same training in one process without a network: the reference that the distributed one has to equal bit
// for bit.
#pragma once

#include <deque>
#include <functional>

#include "core/result.hpp"
#include "sync/commands.hpp"
#include "sync/observer.hpp"
#include "sync/server.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

// Computes the steps of all ranks one after the other. setup has passed check_setup(); its schedule, lanes
// and pace have no meaning here. The time of an iteration is that of all ranks together.
Result<Ending> run_local(const TrainingSetup& setup, Task& task, const Update& update,
                         const std::function<Result<Evaluation>()>& evaluate,
                         const std::deque<Command>& commands, Observer& observer, int signal_fd);

}  // namespace gradlane::train
