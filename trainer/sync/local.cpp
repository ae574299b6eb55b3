// SPDX-License-Identifier: Apache-2.0
#include "sync/local.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "sync/parameter_store.hpp"
#include "sync/poller.hpp"
#include "sync/sender.hpp"

namespace gradlane::train {

namespace {

// Forward and backward of one rank; its gradients go to the store.
StepReport run_rank(Task& task, const Plan& plan, ParameterStore& store, std::uint32_t rank, Pacer& pacer) {
  Model& model = task.model();
  StepReport report;
  const StepHooks hooks{
      .wait_for_parameters = [](std::size_t /*layer*/, Clock::time_point& /*complete*/) { return true; },
      .between_passes = [] {},
      .gradient_ready =
          [&](std::size_t layer) {
            for (std::uint32_t slice = plan.first_slice[layer]; slice < plan.first_slice[layer + 1];
                 ++slice) {
              const Slice& part = plan.slices[slice];
              std::ranges::copy(model.gradient(layer).subspan(part.offset, part.floats),
                                store.gradient(rank, slice).begin());
            }
          },
  };
  run_step(model, pacer, hooks, report);
  return report;
}

}  // namespace

Result<Ending> run_local(const TrainingSetup& setup, Task& task, const Update& update,
                         const std::function<Result<Evaluation>()>& evaluate,
                         const std::deque<Command>& commands, Observer& observer, int signal_fd) {
  Model& model = task.model();
  const Plan plan = Plan::make(setup, layer_parameters(model));
  ParameterStore store(model, plan.slices, setup.workers, update);
  Pacer pacer(0, layer_multiply_adds(model));
  std::uint32_t step = 0;
  if (Status status = observer.ready(setup, model); !status) return status.error();
  for (const Command& command : commands) {
    if (command.kind == Command::Kind::evaluate) {
      const auto evaluation = evaluate();
      if (!evaluation) return evaluation.error();
      if (Status status = observer.evaluated(step, *evaluation); !status) return status.error();
    }
    if (command.kind != Command::Kind::run) continue;
    BlockCollector block(setup.workers, step, command.steps);
    for (std::uint32_t index = 0; index < command.steps; ++index, ++step) {
      if (const Signal signal = take_signal(signal_fd); signal.number != 0) {
        spdlog::warn("ended by {}", signal.name);
        return Ending{.signal = signal.number};
      }
      const auto begin = Clock::now();
      std::vector<StepReport> reports(setup.workers);
      for (std::uint32_t rank = 0; rank < setup.workers; ++rank) {
        if (Status status = task.prepare(step, rank); !status) return status.error();
        reports[rank] = run_rank(task, plan, store, rank, pacer);
        reports[rank].samples = setup.samples_per_worker();
        if (Status status = task.status(); !status) return status.error();
      }
      for (std::uint32_t rank = 0; rank < setup.workers; ++rank) {
        for (std::uint32_t slice = 0; slice < plan.slices.size(); ++slice) store.arrived(rank, slice);
      }
      const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
      for (std::uint32_t rank = 0; rank < setup.workers; ++rank) {
        reports[rank].iteration_ns = static_cast<std::uint64_t>(time.count());
        block.add(rank, reports[rank]);
      }
      if (Status status = observer.progressed(step, block.loss(index)); !status) return status.error();
    }
    if (Status status = observer.block(block.result()); !status) return status.error();
  }
  if (Status status = observer.finished({.steps = step, .checks = 0, .fingerprint = fingerprint(model)});
      !status)
    return status.error();
  return Ending{};
}

}  // namespace gradlane::train
