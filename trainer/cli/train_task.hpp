// SPDX-License-Identifier: Apache-2.0
// The program's own tasks: networks over a backend, with pictures to learn from.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "core/result.hpp"
#include "data/dataset.hpp"
#include "model/network.hpp"
#include "sync/parameter_store.hpp"
#include "sync/setup.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

// A network with the training data of a folder; backend as for make_backend().
Result<std::unique_ptr<Task>> make_train_task(const TrainingSetup& setup, const std::string& folder,
                                              const std::string& backend);

// A network with the test data of a folder.
class TestTask {
 public:
  static Result<TestTask> create(const TrainingSetup& setup, const std::string& folder,
                                 const std::string& backend);

  Network& network() { return *network_; }
  // Accuracy and loss over all test data with the given parameters, which are copied from a model of the same
  // layers.
  Result<Evaluation> evaluate(Model& model);

 private:
  TestTask(std::unique_ptr<Backend> backend, Dataset dataset, std::unique_ptr<Network> network)
      : backend_(std::move(backend)), dataset_(std::move(dataset)), network_(std::move(network)) {}

  std::unique_ptr<Backend> backend_;  // outlives the network
  Dataset dataset_;
  std::unique_ptr<Network> network_;
};

// Stochastic gradient descent with the setup's numbers.
Update make_update(const TrainingSetup& setup);

}  // namespace gradlane::train
