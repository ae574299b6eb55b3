// SPDX-License-Identifier: Apache-2.0
// What layers compute with: memory of a device and the operations on it. Pointers are to memory that
// allocate() gave, unless they are called host. Operations run in the order of the calls; upload() and
// download() wait for those before them. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backend/shapes.hpp"
#include "core/result.hpp"

namespace gradlane::train {

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // For a person: "cpu (x86-64-v3)", "cuda (NVIDIA H200)".
  virtual std::string name() const = 0;
  // The first failure of any operation since the start. After one, operations do nothing and downloads give
  // zeros, so callers look here once per step.
  virtual Status status() const = 0;

  // Memory of this many bytes, aligned to 64, all zero.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void upload(void* to, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* from, std::size_t bytes) = 0;

  virtual void gemm(const Gemm& product) = 0;
  // One sample's pixels as columns for a 3x3 window with padding 1: columns is [channels * 9][height *
  // width].
  virtual void im2col(ImageShape shape, const float* image, float* columns) = 0;
  // The transposition of im2col: adds the columns up to the pixels they came from; overwrites image.
  virtual void col2im(ImageShape shape, const float* columns, float* image) = 0;
  // values += bias of their channel.
  virtual void add_bias(BiasShape shape, const float* bias, float* values) = 0;
  // bias_gradient[channel] = sum of gradient over batch and inner.
  virtual void bias_gradient(BiasShape shape, const float* gradient, float* bias_gradient) = 0;
  virtual void relu_forward(std::size_t count, const float* input, float* output) = 0;
  virtual void relu_backward(std::size_t count, const float* input, const float* output_gradient,
                             float* input_gradient) = 0;
  // 2x2 windows, step 2, of `batch` samples with inputs of this shape; outputs have half its height and
  // width, rounded down.
  virtual void max_pool_forward(int batch, ImageShape shape, const float* input, float* output) = 0;
  virtual void max_pool_backward(int batch, ImageShape shape, const float* input,
                                 const float* output_gradient, float* input_gradient) = 0;
  // logits and gradient are [batch][classes]; losses and hits (1 where the largest logit is the label's) are
  // [batch].
  virtual void softmax_cross_entropy(int batch, int classes, const float* logits, const std::uint8_t* labels,
                                     float* gradient, float* losses, float* hits) = 0;
};

// Owner of device memory for `count` values of T.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Backend& backend, std::size_t count)
      : backend_(&backend), memory_(static_cast<T*>(backend.allocate(count * sizeof(T)))) {}
  Buffer(Buffer&& other) noexcept
      : backend_(other.backend_), memory_(std::exchange(other.memory_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (memory_ != nullptr) backend_->release(memory_);
  }

  T* get() const { return memory_; }

 private:
  Backend* backend_ = nullptr;
  T* memory_ = nullptr;
};

// kind: "cpu"; "cuda", which fails where no device answers; or "auto": CUDA where a device answers, otherwise
// the CPU with one warning in the log that says why.
Result<std::unique_ptr<Backend>> make_backend(const std::string& kind);

}  // namespace gradlane::train
