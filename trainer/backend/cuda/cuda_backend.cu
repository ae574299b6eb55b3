// SPDX-License-Identifier: Apache-2.0
// The backend for NVIDIA GPUs: cuBLAS for the products, one thread per element of the kernel bodies for the
// rest, all on one stream. cuDNN is not used: with 3x3 windows on small pictures it would save launches, not
// time that counts beside the network, and it is ten times the size of everything else.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "backend/cuda/load.hpp"
#include "backend/kernels.hpp"

namespace gradlane::train {
namespace {

constexpr int kThreads = 128;  // of a block

// Calls body(index) for index 0..count-1.
template <typename Body>
__global__ void each(long count, Body body) {
  const long index = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) body(index);
}

// One block per channel; its threads' sums are added in order, so that repeats give the same bits.
__global__ void sum_channels(BiasShape shape, const float* gradient, float* bias_gradient) {
  __shared__ float parts[kThreads];
  const int channel = static_cast<int>(blockIdx.x);
  parts[threadIdx.x] =
      kernel::bias_gradient_part(shape, gradient, channel, static_cast<int>(threadIdx.x), kThreads);
  __syncthreads();
  if (threadIdx.x != 0) return;
  float sum = 0.0F;
  for (const float part : parts) sum += part;
  bias_gradient[channel] = sum;
}

class CudaBackend final : public Backend {
 public:
  // Takes device 0; status() tells whether it answers.
  CudaBackend() {
    cudaDeviceProp properties{};
    check("find a CUDA device", cudaGetDeviceProperties(&properties, 0));
    device_ = properties.name;
    if (ok()) check_blas("start cuBLAS", cublasCreate(&blas_));
  }
  ~CudaBackend() override {
    if (blas_ != nullptr) cublasDestroy(blas_);
  }

  std::string name() const override { return "cuda (" + device_ + ")"; }
  Status status() const override { return failure_.empty() ? Status() : Status(make_error(failure_)); }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (ok()) check("allocate device memory", cudaMalloc(&memory, bytes));
    if (ok()) check("clear device memory", cudaMemset(memory, 0, bytes));
    return memory;
  }
  void release(void* memory) override { check("free device memory", cudaFree(memory)); }
  void upload(void* to, const void* host, std::size_t bytes) override {
    if (ok()) check("copy to the device", cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice));
  }
  void download(void* host, const void* from, std::size_t bytes) override {
    if (ok()) check("copy from the device", cudaMemcpy(host, from, bytes, cudaMemcpyDeviceToHost));
    if (!ok()) std::memset(host, 0, bytes);
  }

  void gemm(const Gemm& product) override {
    if (!ok()) return;
    const auto g = kernel::column_major(product);
    const float one = 1.0F;
    const float keep = product.accumulate ? 1.0F : 0.0F;
    check_blas("multiply matrices", cublasSgemm(blas_, g.transpose_first ? CUBLAS_OP_T : CUBLAS_OP_N,
                                                g.transpose_second ? CUBLAS_OP_T : CUBLAS_OP_N, g.rows,
                                                g.columns, g.depth, &one, g.first, g.first_leading, g.second,
                                                g.second_leading, &keep, g.result, g.result_leading));
  }
  void im2col(ImageShape s, const float* image, float* columns) override {
    run(9L * s.channels * s.height * s.width, [=] __device__(long i) {
      const int x = static_cast<int>(i % s.width);
      const int y = static_cast<int>(i / s.width % s.height);
      columns[i] = kernel::im2col(s, image, static_cast<int>(i / s.width / s.height), y, x);
    });
  }
  void col2im(ImageShape s, const float* columns, float* image) override {
    run(static_cast<long>(s.channels) * s.height * s.width, [=] __device__(long i) {
      const int x = static_cast<int>(i % s.width);
      const int y = static_cast<int>(i / s.width % s.height);
      image[i] = kernel::col2im(s, columns, static_cast<int>(i / s.width / s.height), y, x);
    });
  }
  void add_bias(BiasShape s, const float* bias, float* values) override {
    run(static_cast<long>(s.batch) * s.channels * s.inner,
        [=] __device__(long i) { values[i] += bias[kernel::bias_channel(s, i)]; });
  }
  void bias_gradient(BiasShape s, const float* gradient, float* bias_gradient) override {
    if (!ok()) return;
    sum_channels<<<s.channels, kThreads>>>(s, gradient, bias_gradient);
    check("start a kernel", cudaGetLastError());
  }
  void relu_forward(std::size_t count, const float* input, float* output) override {
    run(static_cast<long>(count), [=] __device__(long i) { output[i] = kernel::relu(input[i]); });
  }
  void relu_backward(std::size_t count, const float* input, const float* output_gradient,
                     float* input_gradient) override {
    run(static_cast<long>(count),
        [=] __device__(long i) { input_gradient[i] = kernel::relu_gradient(input[i], output_gradient[i]); });
  }
  void max_pool_forward(int batch, ImageShape s, const float* input, float* output) override {
    const int height = s.height / 2;
    const int width = s.width / 2;
    run(static_cast<long>(batch) * s.channels * height * width, [=] __device__(long i) {
      const float* plane = input + i / width / height * s.height * s.width;
      const int y = static_cast<int>(i / width % height);
      output[i] = plane[kernel::max_pool_winner(s.width, plane, y, static_cast<int>(i % width))];
    });
  }
  void max_pool_backward(int batch, ImageShape s, const float* input, const float* output_gradient,
                         float* input_gradient) override {
    run(static_cast<long>(batch) * s.channels * s.height * s.width, [=] __device__(long i) {
      const long plane = i / s.width / s.height;
      const int y = static_cast<int>(i / s.width % s.height);
      input_gradient[i] = kernel::max_pool_gradient(s, input + plane * s.height * s.width,
                                                    output_gradient + plane * (s.height / 2) * (s.width / 2),
                                                    y, static_cast<int>(i % s.width));
    });
  }
  void softmax_cross_entropy(int batch, int classes, const float* logits, const std::uint8_t* labels,
                             float* gradient, float* losses, float* hits) override {
    run(batch, [=] __device__(long i) {
      kernel::softmax_cross_entropy(classes, logits + i * classes, labels[i], gradient + i * classes,
                                    losses + i, hits + i);
    });
  }

 private:
  bool ok() const { return failure_.empty(); }

  void check(const char* operation, cudaError_t error) {
    if (error == cudaSuccess || !ok()) return;
    failure_ = std::string("cannot ") + operation + ": " + cudaGetErrorString(error);
  }
  void check_blas(const char* operation, cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS || !ok()) return;
    failure_ = std::string("cannot ") + operation + ": " + cublasGetStatusString(status);
  }

  template <typename Body>
  void run(long count, Body body) {
    if (!ok() || count == 0) return;
    each<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads>>>(count, body);
    check("start a kernel", cudaGetLastError());
  }

  std::string device_;
  std::string failure_;
  cublasHandle_t blas_ = nullptr;
};

}  // namespace
}  // namespace gradlane::train

extern "C" gradlane::train::Backend* gradlane_cuda_backend(char* why, std::size_t size) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::snprintf(why, size, "%s", error != cudaSuccess ? cudaGetErrorString(error) : "no device answers");
    return nullptr;
  }
  auto backend = std::make_unique<gradlane::train::CudaBackend>();
  const auto status = backend->status();
  if (status) return backend.release();
  std::snprintf(why, size, "%s", status.error().message.c_str());
  return nullptr;
}
