// SPDX-License-Identifier: Apache-2.0
#include "sync/compute_thread.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace gradlane::train {

ComputeThread::ComputeThread(Task& task, const TrainingSetup& setup, const Plan& plan, std::uint32_t rank)
    : task_(task),
      setup_(setup),
      plan_(plan),
      rank_(rank),
      pacer_(setup.device_ms, layer_multiply_adds(task.model())),
      layers_(task.model().layers()) {}

ComputeThread::~ComputeThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status ComputeThread::start() {
  event_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event_) return system_error("make", "an event descriptor", errno);
  thread_ = std::thread([this] { run(); });
  return {};
}

ComputeOutput ComputeThread::take() {
  std::uint64_t count = 0;
  // The count itself says nothing; EAGAIN means that there is nothing to take.
  if (::read(event_.get(), &count, sizeof count) < 0) return {};
  const std::lock_guard lock(mutex_);
  return std::exchange(output_, {});
}

void ComputeThread::put(const std::function<void(ComputeOutput&)>& change) {
  {
    const std::lock_guard lock(mutex_);
    change(output_);
  }
  const std::uint64_t one = 1;
  // Cannot fail: the counter never gets near its end.
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void ComputeThread::allow(std::uint32_t until) {
  const std::lock_guard lock(mutex_);
  until_ = until;
  allowed_since_ = Clock::now();
  changed_.notify_all();
}

void ComputeThread::layer_complete(std::size_t layer, std::uint32_t version) {
  const std::lock_guard lock(mutex_);
  layers_[layer] = {.known = true, .version = version, .since = Clock::now()};
  changed_.notify_all();
}

bool ComputeThread::there(std::size_t layer, std::uint32_t step) const {
  const bool empty = plan_.first_slice[layer] == plan_.first_slice[layer + 1];
  return empty || (layers_[layer].known && layers_[layer].version >= step);
}

bool ComputeThread::wait_for_layer(std::size_t layer, std::uint32_t step, Clock::time_point& complete) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ending_ || there(layer, step); });
  complete = std::max(layers_[layer].since, allowed_since_);
  return !ending_;
}

bool ComputeThread::wait_for_all(std::uint32_t step, Clock::time_point& complete) {
  complete = {};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    Clock::time_point since;
    if (!wait_for_layer(layer, step, since)) return false;
    complete = std::max(complete, since);
  }
  return true;
}

bool ComputeThread::wait_for_block(std::uint32_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ending_ || step < until_; });
  return !ending_;
}

void ComputeThread::run() {
  for (std::uint32_t step = 0;; ++step) {
    // The batch is made before there is something to wait for.
    if (Status status = task_.prepare(step, rank_); !status)
      return put([&](ComputeOutput& output) { output.failed = status.error(); });
    if (!report_open_) {
      // A block begins with all parameters at hand.
      Clock::time_point complete;
      if (!wait_for_all(step, complete) || !wait_for_block(step)) return;
    }
    if (Status status = compute(step); !status)
      return put([&](ComputeOutput& output) { output.failed = status.error(); });
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      last = step + 1 == until_;
    }
    if (last) {
      Clock::time_point complete;
      if (!wait_for_all(step + 1, complete)) return;
      end_iteration(complete);
    }
  }
}

Status ComputeThread::compute(std::uint32_t step) {
  ComputeOutput::Report current{.step = step, .report = {.samples = setup_.samples_per_worker()}};
  Clock::time_point begin;
  bool begun = false;
  const StepHooks hooks{
      .wait_for_parameters =
          [&](std::size_t layer, Clock::time_point& complete) {
            const bool whole = plan_.schedule.whole_passes && !begun;
            if (!(whole ? wait_for_all(step, complete) : wait_for_layer(layer, step, complete))) return false;
            if (!begun) begin = Clock::now();
            if (!begun && report_open_) end_iteration(begin);
            begun = true;
            return true;
          },
      .between_passes =
          [&] {
            current.report.has_fingerprint =
                setup_.check_every != 0 && step != 0 && step % setup_.check_every == 0;
            if (current.report.has_fingerprint) current.report.fingerprint = fingerprint(task_.model());
          },
      .gradient_ready =
          [&](std::size_t layer) {
            const bool empty = plan_.first_slice[layer] == plan_.first_slice[layer + 1];
            if (empty && layer != 0) return;
            put([&](ComputeOutput& output) {
              output.gradients.push_back({.layer = static_cast<std::uint32_t>(layer), .step = step});
              output.backward_done = output.backward_done || layer == 0;
            });
          },
  };
  if (!run_step(task_.model(), pacer_, hooks, current.report)) return {};
  iteration_begin_ = begin;
  open_report_ = current;
  report_open_ = true;
  return task_.status();
}

void ComputeThread::end_iteration(Clock::time_point end) {
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(end - iteration_begin_);
  open_report_.report.iteration_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
  report_open_ = false;
  put([&](ComputeOutput& output) { output.reports.push_back(open_report_); });
}

}  // namespace gradlane::train
