// SPDX-License-Identifier: Apache-2.0
#include "model/layer.hpp"

#include <string>
#include <utility>

namespace gradlane::train {
namespace {

constexpr int kWindow = 9;  // elements of the convolution's 3x3 window

std::string text_of(ImageShape shape) {
  return std::to_string(shape.channels) + " x " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width);
}

std::size_t parameters_of(int outputs, int fan_in) {
  return static_cast<std::size_t>(outputs) * (static_cast<std::size_t>(fan_in) + 1);
}

// Output channels = weights [outputs][fan in] * columns [fan in][pixels], one sample after the other, so that
// the columns of one sample stay in the cache.
class Convolution final : public Layer {
 public:
  Convolution(Backend& backend, ImageShape input, int outputs, int number)
      : Layer(backend, input, {outputs, input.height, input.width},
              LayerInfo{"conv" + std::to_string(number), "3x3, " + std::to_string(outputs) + " channels",
                        parameters_of(outputs, input.channels * kWindow),
                        static_cast<double>(outputs) * input.channels * kWindow * input.height * input.width},
              input.channels * kWindow),
        columns_(backend, size_of(input) * kWindow) {}

  void forward(int batch, const float* input, const float* parameters, float* output) override {
    for (int sample = 0; sample < batch; ++sample) {
      backend_.im2col(input_, input + offset(sample, input_), columns_.get());
      backend_.gemm({.rows = output_.channels,
                     .columns = pixels(),
                     .depth = fan_in(),
                     .a = parameters,
                     .transpose_a = false,
                     .b = columns_.get(),
                     .transpose_b = false,
                     .c = output + offset(sample, output_),
                     .accumulate = false});
    }
    backend_.add_bias({batch, output_.channels, pixels()}, parameters + weights(), output);
  }

  void backward(int batch, const float* input, const float* parameters, const float* output_gradient,
                float* parameter_gradient, float* input_gradient) override {
    for (int sample = 0; sample < batch; ++sample) {
      const float* gradient = output_gradient + offset(sample, output_);
      backend_.im2col(input_, input + offset(sample, input_), columns_.get());
      backend_.gemm({.rows = output_.channels,
                     .columns = fan_in(),
                     .depth = pixels(),
                     .a = gradient,
                     .transpose_a = false,
                     .b = columns_.get(),
                     .transpose_b = true,
                     .c = parameter_gradient,
                     .accumulate = sample > 0});
      if (input_gradient == nullptr) continue;
      backend_.gemm({.rows = fan_in(),
                     .columns = pixels(),
                     .depth = output_.channels,
                     .a = parameters,
                     .transpose_a = true,
                     .b = gradient,
                     .transpose_b = false,
                     .c = columns_.get(),
                     .accumulate = false});
      backend_.col2im(input_, columns_.get(), input_gradient + offset(sample, input_));
    }
    backend_.bias_gradient({batch, output_.channels, pixels()}, output_gradient,
                           parameter_gradient + weights());
  }

 private:
  static std::size_t offset(int sample, ImageShape shape) {
    return static_cast<std::size_t>(sample) * size_of(shape);
  }
  int pixels() const { return input_.height * input_.width; }
  std::size_t weights() const {
    return static_cast<std::size_t>(output_.channels) * static_cast<std::size_t>(fan_in());
  }

  Buffer<float> columns_;  // [fan in][pixels] of one sample
};

// Outputs [batch][outputs] = inputs [batch][inputs] * transposed weights [outputs][inputs].
class Dense final : public Layer {
 public:
  Dense(Backend& backend, ImageShape input, int outputs, int number)
      : Layer(backend, input, {outputs, 1, 1},
              LayerInfo{"dense" + std::to_string(number),
                        std::to_string(size_of(input)) + " -> " + std::to_string(outputs),
                        parameters_of(outputs, static_cast<int>(size_of(input))),
                        static_cast<double>(size_of(input)) * outputs},
              static_cast<int>(size_of(input))) {}

  void forward(int batch, const float* input, const float* parameters, float* output) override {
    backend_.gemm({.rows = batch,
                   .columns = output_.channels,
                   .depth = fan_in(),
                   .a = input,
                   .transpose_a = false,
                   .b = parameters,
                   .transpose_b = true,
                   .c = output,
                   .accumulate = false});
    backend_.add_bias({batch, output_.channels, 1}, parameters + weights(), output);
  }

  void backward(int batch, const float* input, const float* parameters, const float* output_gradient,
                float* parameter_gradient, float* input_gradient) override {
    backend_.gemm({.rows = output_.channels,
                   .columns = fan_in(),
                   .depth = batch,
                   .a = output_gradient,
                   .transpose_a = true,
                   .b = input,
                   .transpose_b = false,
                   .c = parameter_gradient,
                   .accumulate = false});
    backend_.bias_gradient({batch, output_.channels, 1}, output_gradient, parameter_gradient + weights());
    if (input_gradient == nullptr) return;
    backend_.gemm({.rows = batch,
                   .columns = fan_in(),
                   .depth = output_.channels,
                   .a = output_gradient,
                   .transpose_a = false,
                   .b = parameters,
                   .transpose_b = false,
                   .c = input_gradient,
                   .accumulate = false});
  }

 private:
  std::size_t weights() const {
    return static_cast<std::size_t>(output_.channels) * static_cast<std::size_t>(fan_in());
  }
};

class MaxPool final : public Layer {
 public:
  MaxPool(Backend& backend, ImageShape input, int number)
      : Layer(backend, input, {input.channels, input.height / 2, input.width / 2},
              LayerInfo{"pool" + std::to_string(number), "2x2", 0, 0}, 0) {}

  void forward(int batch, const float* input, const float* /*parameters*/, float* output) override {
    backend_.max_pool_forward(batch, input_, input, output);
  }
  void backward(int batch, const float* input, const float* /*parameters*/, const float* output_gradient,
                float* /*parameter_gradient*/, float* input_gradient) override {
    if (input_gradient != nullptr)
      backend_.max_pool_backward(batch, input_, input, output_gradient, input_gradient);
  }
};

class Relu final : public Layer {
 public:
  Relu(Backend& backend, ImageShape input, int number)
      : Layer(backend, input, input, LayerInfo{"relu" + std::to_string(number), text_of(input), 0, 0}, 0) {}

  void forward(int batch, const float* input, const float* /*parameters*/, float* output) override {
    backend_.relu_forward(static_cast<std::size_t>(batch) * size_of(input_), input, output);
  }
  void backward(int batch, const float* input, const float* /*parameters*/, const float* output_gradient,
                float* /*parameter_gradient*/, float* input_gradient) override {
    if (input_gradient == nullptr) return;
    backend_.relu_backward(static_cast<std::size_t>(batch) * size_of(input_), input, output_gradient,
                           input_gradient);
  }
};

}  // namespace

Result<std::unique_ptr<Layer>> make_layer(Backend& backend, LayerSpec spec, ImageShape input, int number) {
  std::unique_ptr<Layer> layer;
  switch (spec.kind) {
    case LayerKind::kConvolution:
      layer = std::make_unique<Convolution>(backend, input, spec.outputs, number);
      break;
    case LayerKind::kDense:
      layer = std::make_unique<Dense>(backend, input, spec.outputs, number);
      break;
    case LayerKind::kMaxPool:
      if (input.height < 2 || input.width < 2) {
        return make_error("pool" + std::to_string(number) + " of the network gets " + text_of(input) +
                          " inputs, too few to pool 2x2: take a pool out, or put it before the dense layers");
      }
      layer = std::make_unique<MaxPool>(backend, input, number);
      break;
    case LayerKind::kRelu:
      layer = std::make_unique<Relu>(backend, input, number);
      break;
  }
  return layer;
}

}  // namespace gradlane::train
