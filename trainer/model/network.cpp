// SPDX-License-Identifier: Apache-2.0
#include "model/network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "data/random.hpp"
#include "model/network_spec.hpp"

namespace gradlane::train {
namespace {

constexpr std::size_t kMaxParameters = std::size_t{64} << 20U;  // floats
constexpr std::size_t kMaxActivations = std::size_t{4} << 20U;  // floats of one sample in one layer
constexpr std::size_t kEvaluationBatch = 32;

Error bad_last_layer(int classes) {
  return make_error("the last layer of the network must be \"dense " + std::to_string(classes) +
                    "\", one output for each class of the dataset");
}

}  // namespace

Result<std::unique_ptr<Network>> Network::create(Backend& backend, std::string_view spec, ImageShape input,
                                                 int classes, std::uint64_t seed) {
  const auto specs = parse_network(spec);
  if (!specs) return specs.error();
  if (specs->back() != LayerSpec{LayerKind::kDense, classes}) return bad_last_layer(classes);
  std::unique_ptr<Network> network(new Network(backend, input, classes));
  std::array<int, 4> numbers{};
  std::size_t parameters = 0;
  ImageShape shape = input;
  for (const LayerSpec& layer_spec : *specs) {
    // Checked before the memory is taken.
    const auto outputs = static_cast<std::size_t>(layer_spec.outputs);
    const bool convolution = layer_spec.kind == LayerKind::kConvolution;
    const std::size_t fan_in = convolution ? static_cast<std::size_t>(shape.channels) * 9 : size_of(shape);
    parameters += outputs * (fan_in + 1);
    const std::size_t activations = outputs * size_of({1, shape.height, shape.width});
    if (parameters > kMaxParameters || (convolution && activations > kMaxActivations)) {
      return make_error("the network is too large: use fewer or smaller layers, at most " +
                        std::to_string(kMaxParameters) + " parameters and " +
                        std::to_string(kMaxActivations) + " outputs of a layer");
    }
    auto layer = make_layer(backend, layer_spec, shape, ++numbers[static_cast<std::size_t>(layer_spec.kind)]);
    if (!layer) return layer.error();
    shape = (*layer)->output_shape();
    Slot slot;
    const std::size_t count = (*layer)->info().parameters;
    slot.parameters.resize(count);
    slot.gradient.resize(count);
    if (count > 0) {
      slot.device_parameters = Buffer<float>(backend, count);
      slot.device_gradient = Buffer<float>(backend, count);
    }
    slot.layer = std::move(*layer);
    network->slots_.push_back(std::move(slot));
  }
  network->initialise(seed);
  if (const auto status = backend.status(); !status) return status.error();
  return network;
}

Network::Network(Backend& backend, ImageShape input, int classes)
    : backend_(backend), input_shape_(input), classes_(classes) {}

void Network::initialise(std::uint64_t seed) {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    if (slot.parameters.empty()) continue;
    const float limit = std::sqrt(6.0F / static_cast<float>(slot.layer->fan_in()));
    const auto biases = static_cast<std::size_t>(slot.layer->output_shape().channels);
    const auto weights = std::span(slot.parameters).first(slot.parameters.size() - biases);
    Random random(seed, index);
    for (float& weight : weights) weight = limit * random.symmetric();
  }
}

void Network::reserve(std::size_t batch) {
  if (batch <= capacity_) return;
  std::size_t largest = size_of(input_shape_);
  for (Slot& slot : slots_) {
    const std::size_t size = size_of(slot.layer->output_shape());
    slot.output = Buffer<float>(backend_, batch * size);
    largest = std::max(largest, size);
  }
  images_ = Buffer<float>(backend_, batch * size_of(input_shape_));
  labels_ = Buffer<std::uint8_t>(backend_, batch);
  outcomes_ = Buffer<float>(backend_, 2 * batch);
  output_gradient_ = Buffer<float>(backend_, batch * largest);
  input_gradient_ = Buffer<float>(backend_, batch * largest);
  capacity_ = batch;
}

void Network::set_batch(std::span<const float> images, std::span<const std::uint8_t> labels) {
  batch_ = labels.size();
  reserve(batch_);
  backend_.upload(images_.get(), images.data(), images.size_bytes());
  backend_.upload(labels_.get(), labels.data(), labels.size_bytes());
}

const float* Network::input_of(std::size_t index) const {
  return index == 0 ? images_.get() : slots_[index - 1].output.get();
}

void Network::forward(std::size_t index) {
  Slot& slot = slots_[index];
  if (!slot.parameters.empty()) {
    backend_.upload(slot.device_parameters.get(), slot.parameters.data(),
                    slot.parameters.size() * sizeof(float));
  }
  slot.layer->forward(static_cast<int>(batch_), input_of(index), slot.device_parameters.get(),
                      slot.output.get());
  if (index + 1 == slots_.size()) compute_loss();
}

void Network::compute_loss() {
  backend_.softmax_cross_entropy(static_cast<int>(batch_), classes_, slots_.back().output.get(),
                                 labels_.get(), output_gradient_.get(), outcomes_.get(),
                                 outcomes_.get() + batch_);
  std::vector<float> outcomes(2 * batch_);
  backend_.download(outcomes.data(), outcomes_.get(), outcomes.size() * sizeof(float));
  const auto hits = outcomes.begin() + static_cast<std::ptrdiff_t>(batch_);
  loss_sum_ = std::accumulate(outcomes.begin(), hits, 0.0);
  correct_ = static_cast<std::size_t>(std::accumulate(hits, outcomes.end(), 0.0));
}

void Network::backward(std::size_t index) {
  Slot& slot = slots_[index];
  slot.layer->backward(static_cast<int>(batch_), input_of(index), slot.device_parameters.get(),
                       output_gradient_.get(), slot.device_gradient.get(),
                       index == 0 ? nullptr : input_gradient_.get());
  std::swap(output_gradient_, input_gradient_);
  if (!slot.gradient.empty()) {
    backend_.download(slot.gradient.data(), slot.device_gradient.get(), slot.gradient.size() * sizeof(float));
  }
}

Result<Evaluation> Network::evaluate(const Dataset& dataset) {
  if (input_shape_.channels != 1 || dataset.height != static_cast<std::size_t>(input_shape_.height) ||
      dataset.width != static_cast<std::size_t>(input_shape_.width)) {
    return make_error("the test pictures are " + std::to_string(dataset.height) + " x " +
                      std::to_string(dataset.width) + " but the network was made for " +
                      std::to_string(input_shape_.height) + " x " + std::to_string(input_shape_.width) +
                      ": take training and test pictures from the same dataset");
  }
  double loss = 0;
  std::size_t right = 0;
  std::vector<std::uint32_t> indices;
  std::vector<float> images;
  std::vector<std::uint8_t> labels;
  for (std::size_t first = 0; first < dataset.count; first += kEvaluationBatch) {
    const std::size_t batch = std::min(kEvaluationBatch, dataset.count - first);
    indices.resize(batch);
    std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first));
    images.resize(batch * dataset.image_size());
    labels.resize(batch);
    select(dataset, indices, images, labels);
    set_batch(images, labels);
    for (std::size_t index = 0; index < layers(); ++index) forward(index);
    loss += loss_sum();
    right += correct();
  }
  if (const auto state = status(); !state) return state.error();
  const auto count = static_cast<double>(std::max<std::size_t>(dataset.count, 1));
  return Evaluation{static_cast<double>(right) / count, loss / count};
}

}  // namespace gradlane::train
