// SPDX-License-Identifier: Apache-2.0
// What schedules and synchronisation see of a network: layers in the order of the forward pass, each computed
// one at a time, with its parameters and gradients in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gradlane::train {

// One layer, as far as communication cares.
struct LayerInfo {
  std::string name;            // "conv1"
  std::string shape;           // for a person: "3x3, 16 channels", "1568 -> 32"
  std::size_t parameters = 0;  // number of floats; 0 for pooling and the like
  double multiply_adds = 0;    // of one forward pass over one sample
};

// A network that is trained layer by layer. Not thread safe, but for parameters(), which another thread may
// write for layers that are not being computed.
class Model {
 public:
  virtual ~Model() = default;

  virtual std::size_t layers() const = 0;
  virtual const LayerInfo& layer(std::size_t index) const = 0;

  // The batch that the next forward and backward passes are about. Pixels are 0..1, labels 0..classes-1.
  virtual void set_batch(std::span<const float> images, std::span<const std::uint8_t> labels) = 0;
  // Layers in ascending order; the parameters of layer index must be complete in host memory by now.
  virtual void forward(std::size_t index) = 0;
  // Sum of the cross entropy over the batch, and how many samples were classified right; after the last
  // forward().
  virtual double loss_sum() const = 0;
  virtual std::size_t correct() const = 0;
  // Layers in descending order. The gradients are sums over the batch, not means.
  virtual void backward(std::size_t index) = 0;

  // Host memory of layer index: its gradient, complete after backward(index) until the next one; and its
  // parameters, which forward(index) reads.
  virtual std::span<const float> gradient(std::size_t index) const = 0;
  virtual std::span<float> parameters(std::size_t index) = 0;
};

}  // namespace gradlane::train
