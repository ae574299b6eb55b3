// SPDX-License-Identifier: Apache-2.0
// The computing half of a worker, and what it shares with the network half.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "sync/pacer.hpp"
#include "sync/sender.hpp"
#include "sync/setup.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

// What the computing thread has for the network.
struct ComputeOutput {
  struct Gradient {
    std::uint32_t layer = 0;
    std::uint32_t step = 0;
  };
  struct Report {
    std::uint32_t step = 0;
    StepReport report;
  };
  std::vector<Gradient> gradients;  // complete, in the order of completion
  std::vector<Report> reports;
  bool backward_done = false;  // all gradients of the step are out
  std::optional<Error> failed;
};

// Runs the iterations in a thread of its own. The other methods are called by the network's thread.
class ComputeThread {
 public:
  // All references must outlive this object.
  ComputeThread(Task& task, const TrainingSetup& setup, const Plan& plan, std::uint32_t rank);
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;
  // Ends the thread after the layer that it computes.
  ~ComputeThread();

  Status start();
  // Readable while take() has something.
  int event_fd() const { return event_.get(); }
  ComputeOutput take();

  // Steps below it may be computed.
  void allow(std::uint32_t until);
  // All slices of this layer have had this many updates, as of now.
  void layer_complete(std::size_t layer, std::uint32_t version);

 private:
  // What is known of a layer's parameters.
  struct Layer {
    bool known = false;
    std::uint32_t version = 0;
    Clock::time_point since;
  };

  void run();
  Status compute(std::uint32_t step);
  bool wait_for_block(std::uint32_t step);
  bool wait_for_layer(std::size_t layer, std::uint32_t step, Clock::time_point& complete);
  bool wait_for_all(std::uint32_t step, Clock::time_point& complete);
  bool there(std::size_t layer, std::uint32_t step) const;
  void end_iteration(Clock::time_point end);
  void put(const std::function<void(ComputeOutput&)>& change);

  Task& task_;
  const TrainingSetup& setup_;
  const Plan& plan_;
  const std::uint32_t rank_;
  Pacer pacer_;
  Fd event_;
  std::thread thread_;

  // The iteration whose time is being taken; used by the computing thread only.
  Clock::time_point iteration_begin_;
  ComputeOutput::Report open_report_;
  bool report_open_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::uint32_t until_ = 0;
  Clock::time_point allowed_since_;
  std::vector<Layer> layers_;
  ComputeOutput output_;
};

}  // namespace gradlane::train
