// SPDX-License-Identifier: Apache-2.0
// The CPU's loops, compiled once for each instruction set; one table of functions each. The operations are
// those of Backend.
#pragma once

#include "backend/shapes.hpp"

namespace gradlane::train {

struct CpuKernels {
  const char* level;  // name of the instruction set: "x86-64-v3"
  void (*gemm)(const Gemm& product);
  void (*im2col)(ImageShape shape, const float* image, float* columns);
  void (*col2im)(ImageShape shape, const float* columns, float* image);
  void (*add_bias)(BiasShape shape, const float* bias, float* values);
  void (*bias_gradient)(BiasShape shape, const float* gradient, float* bias_gradient);
  void (*relu_forward)(long count, const float* input, float* output);
  void (*relu_backward)(long count, const float* input, const float* output_gradient, float* input_gradient);
  void (*max_pool_forward)(int batch, ImageShape shape, const float* input, float* output);
  void (*max_pool_backward)(int batch, ImageShape shape, const float* input, const float* output_gradient,
                            float* input_gradient);
  void (*softmax_cross_entropy)(int batch, int classes, const float* logits, const unsigned char* labels,
                                float* gradient, float* losses, float* hits);
};

extern const CpuKernels kCpuKernelsBaseline;
#ifdef GRADLANE_CPU_V3
extern const CpuKernels kCpuKernelsV3;
#endif

}  // namespace gradlane::train
