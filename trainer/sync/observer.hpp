// SPDX-License-Identifier: Apache-2.0
// Who is told what happens in a training: the program prints it.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "model/network.hpp"
#include "sync/setup.hpp"
#include "sync/socket.hpp"
#include "sync/statistics.hpp"

namespace gradlane::train {

// A comparison of all workers' parameters with the server's, bit for bit.
struct CheckResult {
  std::uint32_t step = 0;         // updates that the parameters have had
  std::uint64_t fingerprint = 0;  // of the server's
  bool agree = false;
};

// The whole training.
struct TrainingResult {
  std::uint32_t steps = 0;
  std::uint32_t checks = 0;       // comparisons of weights, all of which agreed
  std::uint64_t fingerprint = 0;  // of the parameters in the end
};

// An error, of printing for example, ends the training.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual Status listening(const Address& address) = 0;
  // All workers are there.
  virtual Status ready(const TrainingSetup& setup, const Model& model) = 0;
  // A step has been reported by all ranks; for a progress display.
  virtual Status progressed(std::uint32_t step, double loss) = 0;
  virtual Status block(const BlockResult& block) = 0;
  virtual Status evaluated(std::uint32_t step, const Evaluation& evaluation) = 0;
  virtual Status checked(const CheckResult& check) = 0;
  virtual Status finished(const TrainingResult& result) = 0;
};

}  // namespace gradlane::train
