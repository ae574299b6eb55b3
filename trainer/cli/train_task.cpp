// SPDX-License-Identifier: Apache-2.0
#include "cli/train_task.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/sampler.hpp"
#include "model/network_spec.hpp"
#include "model/sgd.hpp"

namespace gradlane::train {

namespace {

Result<std::unique_ptr<Network>> make_network(Backend& backend, const TrainingSetup& setup,
                                              const Dataset& dataset) {
  const ImageShape shape{
      .channels = 1, .height = static_cast<int>(dataset.height), .width = static_cast<int>(dataset.width)};
  return Network::create(backend, setup.spec.empty() ? kDefaultNetwork : setup.spec.c_str(), shape,
                         static_cast<int>(dataset.classes), setup.seed);
}

class TrainTask final : public Task {
 public:
  TrainTask(std::unique_ptr<Backend> backend, Dataset dataset, std::unique_ptr<Network> network,
            BatchSampler sampler, std::size_t batch)
      : backend_(std::move(backend)),
        dataset_(std::move(dataset)),
        network_(std::move(network)),
        sampler_(std::move(sampler)),
        images_(batch * dataset_.image_size()),
        labels_(batch) {}

  Model& model() override { return *network_; }

  Status prepare(std::uint32_t step, std::uint32_t rank) override {
    const auto indices = sampler_.indices(step, rank);
    select(dataset_, indices, images_, labels_);
    network_->set_batch(images_, labels_);
    return network_->status();
  }

  Status status() override { return network_->status(); }

 private:
  std::unique_ptr<Backend> backend_;  // outlives the network
  Dataset dataset_;
  std::unique_ptr<Network> network_;
  BatchSampler sampler_;
  std::vector<float> images_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace

Result<std::unique_ptr<Task>> make_train_task(const TrainingSetup& setup, const std::string& folder,
                                              const std::string& backend) {
  auto dataset = load_dataset(folder, "train", 0);
  if (!dataset) return dataset.error();
  auto device = make_backend(backend);
  if (!device) return device.error();
  auto network = make_network(**device, setup, *dataset);
  if (!network) return network.error();
  auto sampler = BatchSampler::create(dataset->count, setup.seed, setup.workers, setup.samples_per_worker());
  if (!sampler) return sampler.error();
  return std::unique_ptr<Task>(std::make_unique<TrainTask>(std::move(*device), std::move(*dataset),
                                                           std::move(*network), std::move(*sampler),
                                                           setup.samples_per_worker()));
}

Result<TestTask> TestTask::create(const TrainingSetup& setup, const std::string& folder,
                                  const std::string& backend) {
  auto dataset = load_dataset(folder, "t10k", 0);
  if (!dataset) return dataset.error();
  auto device = make_backend(backend);
  if (!device) return device.error();
  auto network = make_network(**device, setup, *dataset);
  if (!network) return network.error();
  return TestTask(std::move(*device), std::move(*dataset), std::move(*network));
}

Result<Evaluation> TestTask::evaluate(Model& model) {
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    const auto to = network_->parameters(layer);
    // The same memory where the model is this one.
    if (model.parameters(layer).data() != to.data()) std::ranges::copy(model.parameters(layer), to.begin());
  }
  return network_->evaluate(dataset_);
}

Update make_update(const TrainingSetup& setup) {
  const std::size_t samples = setup.batch;
  const auto rate = static_cast<float>(setup.learning_rate);
  const auto momentum = static_cast<float>(setup.momentum);
  return [samples, rate, momentum](std::span<float> parameters, std::span<float> velocity,
                                   std::span<const float> gradient_sum) {
    sgd_momentum(parameters, velocity, gradient_sum, samples, rate, momentum);
  };
}

}  // namespace gradlane::train
