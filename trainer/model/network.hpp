// SPDX-License-Identifier: Apache-2.0
// A network of layers over a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "data/dataset.hpp"
#include "model/layer.hpp"
#include "model/model.hpp"

namespace gradlane::train {

// How well a network does on a dataset.
struct Evaluation {
  double accuracy = 0;   // share of samples classified right, 0..1
  double loss_mean = 0;  // cross entropy per sample, in nats
};

class Network final : public Model {
 public:
  // spec: see parse_network(); its last layer must be dense with `classes` outputs. input: of one sample. The
  // parameters are He's (uniform with variance 2 / fan in, biases 0) and depend on spec, input and seed
  // alone, not on the machine. The backend must live longer.
  static Result<std::unique_ptr<Network>> create(Backend& backend, std::string_view spec, ImageShape input,
                                                 int classes, std::uint64_t seed);

  // The first failure of the backend since its start; results since then are void. To be looked at once per
  // step.
  Status status() const { return backend_.status(); }

  std::size_t layers() const override { return slots_.size(); }
  const LayerInfo& layer(std::size_t index) const override { return slots_[index].layer->info(); }
  void set_batch(std::span<const float> images, std::span<const std::uint8_t> labels) override;
  void forward(std::size_t index) override;
  double loss_sum() const override { return loss_sum_; }
  std::size_t correct() const override { return correct_; }
  void backward(std::size_t index) override;
  std::span<const float> gradient(std::size_t index) const override { return slots_[index].gradient; }
  std::span<float> parameters(std::size_t index) override { return slots_[index].parameters; }

  // Forward passes over all samples in pieces, so that memory does not grow with the dataset. The batch of
  // before is gone afterwards. Fails if the dataset's pictures have another shape, or the backend fails.
  Result<Evaluation> evaluate(const Dataset& dataset);

 private:
  // A layer, its memory on the host, and its memory on the device.
  struct Slot {
    std::unique_ptr<Layer> layer;
    std::vector<float> parameters;
    std::vector<float> gradient;
    Buffer<float> device_parameters;
    Buffer<float> device_gradient;
    Buffer<float> output;  // capacity samples
  };

  Network(Backend& backend, ImageShape input, int classes);
  void initialise(std::uint64_t seed);
  void reserve(std::size_t batch);
  void compute_loss();
  const float* input_of(std::size_t index) const;

  Backend& backend_;
  ImageShape input_shape_;
  int classes_;
  std::vector<Slot> slots_;
  std::size_t batch_ = 0;
  std::size_t capacity_ = 0;  // samples that the buffers below and the outputs hold
  Buffer<float> images_;
  Buffer<std::uint8_t> labels_;
  Buffer<float> outcomes_;  // losses, then hits
  // Gradient by the output of the layer being computed and by its input, exchanged from layer to layer.
  Buffer<float> output_gradient_;
  Buffer<float> input_gradient_;
  double loss_sum_ = 0;
  std::size_t correct_ = 0;
};

}  // namespace gradlane::train
