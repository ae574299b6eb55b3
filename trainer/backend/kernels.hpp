// SPDX-License-Identifier: Apache-2.0
// Bodies of the kernels: the arithmetic of one element (or one row), compiled for the host and for CUDA
// devices, so that it is tested where there is no GPU. Loops and launches are the backends' business.
#pragma once

#include <math.h>  // NOLINT(modernize-deprecated-headers): nvcc has its own ::expf and ::logf

#include "backend/shapes.hpp"

// Internal linkage: the same body compiled for two instruction sets must stay two functions.
#ifdef __CUDACC__
#define GRADLANE_KERNEL static inline __host__ __device__
#else
#define GRADLANE_KERNEL static inline
#endif

namespace gradlane::train::kernel {

// im2col for a 3x3 window with padding 1. Row r of the columns belongs to channel r / 9 and to the window's
// element r % 9 (row by row); its width is height * width, one entry for each output pixel.
GRADLANE_KERNEL float im2col(ImageShape shape, const float* image, int row, int y, int x) {
  const int from_y = y + row % 9 / 3 - 1;
  const int from_x = x + row % 3 - 1;
  if (from_y < 0 || from_y >= shape.height || from_x < 0 || from_x >= shape.width) return 0.0F;
  return image[(row / 9 * shape.height + from_y) * shape.width + from_x];
}

// The transposition of im2col: what all entries of the columns that were read from one pixel add up to.
GRADLANE_KERNEL float col2im(ImageShape shape, const float* columns, int channel, int y, int x) {
  float sum = 0.0F;
  for (int tap = 0; tap < 9; ++tap) {
    const int to_y = y - (tap / 3 - 1);
    const int to_x = x - (tap % 3 - 1);
    if (to_y < 0 || to_y >= shape.height || to_x < 0 || to_x >= shape.width) continue;
    sum += columns[((channel * 9 + tap) * shape.height + to_y) * shape.width + to_x];
  }
  return sum;
}

// The channel that element index of a [batch][channels][inner] array belongs to.
GRADLANE_KERNEL int bias_channel(BiasShape shape, long index) {
  return static_cast<int>(index / shape.inner % shape.channels);
}

// One of `parts` pieces of the gradient of one channel's bias; the whole is their sum in order.
GRADLANE_KERNEL float bias_gradient_part(BiasShape shape, const float* gradient, int channel, int part,
                                         int parts) {
  float sum = 0.0F;
  const int total = shape.batch * shape.inner;
  for (int i = part; i < total; i += parts) {
    const long sample = i / shape.inner;
    sum += gradient[(sample * shape.channels + channel) * shape.inner + i % shape.inner];
  }
  return sum;
}

GRADLANE_KERNEL float relu(float input) { return input > 0.0F ? input : 0.0F; }

GRADLANE_KERNEL float relu_gradient(float input, float output_gradient) {
  return input > 0.0F ? output_gradient : 0.0F;
}

// 2x2 max pooling of one plane: index in the plane of the largest of the four inputs of output (y, x); the
// first one where several are equal.
GRADLANE_KERNEL int max_pool_winner(int width, const float* plane, int y, int x) {
  const int corner = 2 * y * width + 2 * x;
  int best = corner;
  if (plane[corner + 1] > plane[best]) best = corner + 1;
  if (plane[corner + width] > plane[best]) best = corner + width;
  if (plane[corner + width + 1] > plane[best]) best = corner + width + 1;
  return best;
}

// Gradient of one input pixel of 2x2 max pooling; plane and output_gradient are of the same plane. Pixels of
// an odd last row or column have no output.
GRADLANE_KERNEL float max_pool_gradient(ImageShape shape, const float* plane, const float* output_gradient,
                                        int y, int x) {
  const int out_height = shape.height / 2;
  const int out_width = shape.width / 2;
  if (y / 2 >= out_height || x / 2 >= out_width) return 0.0F;
  const int winner = max_pool_winner(shape.width, plane, y / 2, x / 2);
  return winner == y * shape.width + x ? output_gradient[y / 2 * out_width + x / 2] : 0.0F;
}

// One sample: softmax over its logits, then cross entropy against its label (0..classes-1). Writes the
// gradient of the loss by the logits, the loss, and 1 or 0 for whether the largest logit is the label's.
GRADLANE_KERNEL void softmax_cross_entropy(int classes, const float* logits, int label, float* gradient,
                                           float* loss, float* hit) {
  int best = 0;
  for (int i = 1; i < classes; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  // The largest logit is subtracted so that no exponential overflows.
  const float shift = logits[best];
  float sum = 0.0F;
  for (int i = 0; i < classes; ++i) {
    gradient[i] = expf(logits[i] - shift);
    sum += gradient[i];
  }
  for (int i = 0; i < classes; ++i) gradient[i] = gradient[i] / sum - (i == label ? 1.0F : 0.0F);
  *loss = logf(sum) - (logits[label] - shift);
  *hit = best == label ? 1.0F : 0.0F;
}

// A product of matrices stored row by row, said to a BLAS that stores column by column: such a matrix is the
// transposition of ours, so c^T = op(b)^T * op(a)^T, with the factors exchanged and each transposition kept.
struct ColumnMajorGemm {
  bool transpose_first;
  bool transpose_second;
  int rows;
  int columns;
  int depth;
  const float* first;
  int first_leading;  // distance of two columns, in floats
  const float* second;
  int second_leading;
  float* result;
  int result_leading;
};

GRADLANE_KERNEL ColumnMajorGemm column_major(const Gemm& g) {
  return ColumnMajorGemm{.transpose_first = g.transpose_b,
                         .transpose_second = g.transpose_a,
                         .rows = g.columns,
                         .columns = g.rows,
                         .depth = g.depth,
                         .first = g.b,
                         .first_leading = g.transpose_b ? g.depth : g.columns,
                         .second = g.a,
                         .second_leading = g.transpose_a ? g.rows : g.depth,
                         .result = g.c,
                         .result_leading = g.columns};
}

}  // namespace gradlane::train::kernel
