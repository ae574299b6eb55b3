// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_backend.hpp"

#include <cstring>
#include <new>

#include "backend/cpu/cpu_kernels.hpp"

namespace gradlane::train {
namespace {

constexpr std::align_val_t kAlignment{64};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuKernels& kernels) : kernels_(kernels) {}

  std::string name() const override { return std::string("cpu (") + kernels_.level + ")"; }
  Status status() const override { return {}; }

  void* allocate(std::size_t bytes) override {
    void* memory = ::operator new(bytes, kAlignment);
    std::memset(memory, 0, bytes);
    return memory;
  }
  void release(void* memory) override { ::operator delete(memory, kAlignment); }
  void upload(void* to, const void* host, std::size_t bytes) override { std::memcpy(to, host, bytes); }
  void download(void* host, const void* from, std::size_t bytes) override { std::memcpy(host, from, bytes); }

  void gemm(const Gemm& product) override { kernels_.gemm(product); }
  void im2col(ImageShape shape, const float* image, float* columns) override {
    kernels_.im2col(shape, image, columns);
  }
  void col2im(ImageShape shape, const float* columns, float* image) override {
    kernels_.col2im(shape, columns, image);
  }
  void add_bias(BiasShape shape, const float* bias, float* values) override {
    kernels_.add_bias(shape, bias, values);
  }
  void bias_gradient(BiasShape shape, const float* gradient, float* bias_gradient) override {
    kernels_.bias_gradient(shape, gradient, bias_gradient);
  }
  void relu_forward(std::size_t count, const float* input, float* output) override {
    kernels_.relu_forward(static_cast<long>(count), input, output);
  }
  void relu_backward(std::size_t count, const float* input, const float* output_gradient,
                     float* input_gradient) override {
    kernels_.relu_backward(static_cast<long>(count), input, output_gradient, input_gradient);
  }
  void max_pool_forward(int batch, ImageShape shape, const float* input, float* output) override {
    kernels_.max_pool_forward(batch, shape, input, output);
  }
  void max_pool_backward(int batch, ImageShape shape, const float* input, const float* output_gradient,
                         float* input_gradient) override {
    kernels_.max_pool_backward(batch, shape, input, output_gradient, input_gradient);
  }
  void softmax_cross_entropy(int batch, int classes, const float* logits, const std::uint8_t* labels,
                             float* gradient, float* losses, float* hits) override {
    kernels_.softmax_cross_entropy(batch, classes, logits, labels, gradient, losses, hits);
  }

 private:
  const CpuKernels& kernels_;
};

const CpuKernels& choose([[maybe_unused]] CpuLevel level) {
#ifdef GRADLANE_CPU_V3
  if (level == CpuLevel::kBest && __builtin_cpu_supports("x86-64-v3") != 0) return kCpuKernelsV3;
#endif
  return kCpuKernelsBaseline;
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(CpuLevel level) {
  return std::make_unique<CpuBackend>(choose(level));
}

}  // namespace gradlane::train
