// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one layer over a backend; memory of activations, parameters and gradients is the
// network's.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/backend.hpp"
#include "model/model.hpp"
#include "model/network_spec.hpp"

namespace gradlane::train {

// Floats of one sample.
inline std::size_t size_of(ImageShape shape) {
  return static_cast<std::size_t>(shape.channels) * static_cast<std::size_t>(shape.height) *
         static_cast<std::size_t>(shape.width);
}

// Pointers are to the backend's memory, arrays of `batch` samples in NCHW.
class Layer {
 public:
  virtual ~Layer() = default;

  const LayerInfo& info() const { return info_; }
  ImageShape input_shape() const { return input_; }
  ImageShape output_shape() const { return output_; }
  // Inputs of one output, which sets the spread of the first weights; 0 for layers without parameters.
  // Weights come first in the parameters, then output_shape().channels biases.
  int fan_in() const { return fan_in_; }

  virtual void forward(int batch, const float* input, const float* parameters, float* output) = 0;
  // input and parameters are those of forward(). Writes the gradients by the parameters and by the input; the
  // latter may be nullptr: then nobody needs it.
  virtual void backward(int batch, const float* input, const float* parameters, const float* output_gradient,
                        float* parameter_gradient, float* input_gradient) = 0;

 protected:
  Layer(Backend& backend, ImageShape input, ImageShape output, LayerInfo info, int fan_in)
      : backend_(backend), input_(input), output_(output), info_(std::move(info)), fan_in_(fan_in) {}

  Backend& backend_;
  const ImageShape input_;
  const ImageShape output_;

 private:
  LayerInfo info_;
  int fan_in_;
};

// A layer of this kind for this input; number counts the layers of its kind from 1 on ("conv2"). Fails where
// it does not fit its input. The backend must live longer.
Result<std::unique_ptr<Layer>> make_layer(Backend& backend, LayerSpec spec, ImageShape input, int number);

}  // namespace gradlane::train
