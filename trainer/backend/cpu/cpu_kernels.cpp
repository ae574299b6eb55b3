// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. GRADLANE_CPU_TABLE and GRADLANE_CPU_LEVEL name the result; Eigen's
// namespace has another name in each, for else the linker would merge equally named templates and the
// baseline could get instructions that its machine lacks. For the same reason everything here has internal
// linkage, and nothing comes from the standard library.
#include "backend/cpu/cpu_kernels.hpp"

#include <string.h>  // NOLINT(modernize-deprecated-headers): without std's inline wrappers

#include <Eigen/Core>

#include "backend/kernels.hpp"

namespace gradlane::train {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Constant = Eigen::Map<const Matrix>;

template <typename A, typename B>
void multiply(const Gemm& g, const A& a, const B& b) {
  Eigen::Map<Matrix> c(g.c, g.rows, g.columns);
  if (g.accumulate) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

template <typename A>
void multiply(const Gemm& g, const A& a) {
  if (g.transpose_b) {
    multiply(g, a, Constant(g.b, g.columns, g.depth).transpose());
  } else {
    multiply(g, a, Constant(g.b, g.depth, g.columns));
  }
}

void gemm(const Gemm& g) {
  if (g.transpose_a) {
    multiply(g, Constant(g.a, g.depth, g.rows).transpose());
  } else {
    multiply(g, Constant(g.a, g.rows, g.depth));
  }
}

// The part of a row that a window's element reaches: outputs first..last-1 read inputs shifted by dx.
struct Reach {
  int first;
  int last;
};

Reach reach(int dx, int width) { return {dx < 0 ? 1 : 0, dx > 0 ? width - 1 : width}; }

void im2col(ImageShape shape, const float* image, float* columns) {
  for (int channel = 0; channel < shape.channels; ++channel) {
    const float* plane = image + static_cast<long>(channel) * shape.height * shape.width;
    for (int tap = 0; tap < 9; ++tap) {
      const int dx = tap % 3 - 1;
      const Reach x = reach(dx, shape.width);
      for (int y = 0; y < shape.height; ++y, columns += shape.width) {
        const int from = y + tap / 3 - 1;
        if (from < 0 || from >= shape.height) {
          memset(columns, 0, sizeof(float) * static_cast<unsigned>(shape.width));
          continue;
        }
        columns[0] = 0.0F;
        columns[shape.width - 1] = 0.0F;
        const float* row = plane + static_cast<long>(from) * shape.width + dx;
        for (int i = x.first; i < x.last; ++i) columns[i] = row[i];
      }
    }
  }
}

void col2im(ImageShape shape, const float* columns, float* image) {
  const long plane_size = static_cast<long>(shape.height) * shape.width;
  memset(image, 0, sizeof(float) * static_cast<unsigned long>(plane_size * shape.channels));
  for (int channel = 0; channel < shape.channels; ++channel) {
    float* plane = image + channel * plane_size;
    for (int tap = 0; tap < 9; ++tap) {
      const int dx = tap % 3 - 1;
      const Reach x = reach(dx, shape.width);
      for (int y = 0; y < shape.height; ++y, columns += shape.width) {
        const int to = y + tap / 3 - 1;
        if (to < 0 || to >= shape.height) continue;
        float* row = plane + static_cast<long>(to) * shape.width + dx;
        for (int i = x.first; i < x.last; ++i) row[i] += columns[i];
      }
    }
  }
}

void add_bias(BiasShape shape, const float* bias, float* values) {
  for (int sample = 0; sample < shape.batch; ++sample) {
    for (int channel = 0; channel < shape.channels; ++channel, values += shape.inner) {
      for (int i = 0; i < shape.inner; ++i) values[i] += bias[channel];
    }
  }
}

void bias_gradient(BiasShape shape, const float* gradient, float* bias_gradient) {
  constexpr int kParts = 8;  // sums side by side: one vector register
  for (int channel = 0; channel < shape.channels; ++channel) {
    float parts[kParts] = {};
    for (int sample = 0; sample < shape.batch; ++sample) {
      const float* row = gradient + (static_cast<long>(sample) * shape.channels + channel) * shape.inner;
      int i = 0;
      for (; i + kParts <= shape.inner; i += kParts) {
        for (int part = 0; part < kParts; ++part) parts[part] += row[i + part];
      }
      for (; i < shape.inner; ++i) parts[i % kParts] += row[i];
    }
    float sum = 0.0F;
    for (const float part : parts) sum += part;
    bias_gradient[channel] = sum;
  }
}

void relu_forward(long count, const float* input, float* output) {
  for (long i = 0; i < count; ++i) output[i] = kernel::relu(input[i]);
}

void relu_backward(long count, const float* input, const float* output_gradient, float* input_gradient) {
  for (long i = 0; i < count; ++i) input_gradient[i] = kernel::relu_gradient(input[i], output_gradient[i]);
}

void max_pool_forward(int batch, ImageShape shape, const float* input, float* output) {
  for (int plane = 0; plane < batch * shape.channels; ++plane) {
    for (int y = 0; y < shape.height / 2; ++y) {
      for (int x = 0; x < shape.width / 2; ++x)
        *output++ = input[kernel::max_pool_winner(shape.width, input, y, x)];
    }
    input += static_cast<long>(shape.height) * shape.width;
  }
}

void max_pool_backward(int batch, ImageShape shape, const float* input, const float* output_gradient,
                       float* input_gradient) {
  const long plane_size = static_cast<long>(shape.height) * shape.width;
  memset(input_gradient, 0, sizeof(float) * static_cast<unsigned long>(plane_size * batch * shape.channels));
  for (int plane = 0; plane < batch * shape.channels; ++plane) {
    for (int y = 0; y < shape.height / 2; ++y) {
      for (int x = 0; x < shape.width / 2; ++x) {
        input_gradient[kernel::max_pool_winner(shape.width, input, y, x)] = *output_gradient++;
      }
    }
    input += plane_size;
    input_gradient += plane_size;
  }
}

void softmax_cross_entropy(int batch, int classes, const float* logits, const unsigned char* labels,
                           float* gradient, float* losses, float* hits) {
  for (int sample = 0; sample < batch; ++sample) {
    const long offset = static_cast<long>(sample) * classes;
    kernel::softmax_cross_entropy(classes, logits + offset, labels[sample], gradient + offset,
                                  losses + sample, hits + sample);
  }
}

}  // namespace

extern const CpuKernels GRADLANE_CPU_TABLE;
const CpuKernels GRADLANE_CPU_TABLE = {
    .level = GRADLANE_CPU_LEVEL,
    .gemm = gemm,
    .im2col = im2col,
    .col2im = col2im,
    .add_bias = add_bias,
    .bias_gradient = bias_gradient,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .max_pool_forward = max_pool_forward,
    .max_pool_backward = max_pool_backward,
    .softmax_cross_entropy = softmax_cross_entropy,
};

}  // namespace gradlane::train
