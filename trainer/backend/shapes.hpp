// SPDX-License-Identifier: Apache-2.0
// The plain structs that backends and kernel bodies share. No standard library in here: the file is compiled
// for several instruction sets and by nvcc.
#pragma once

namespace gradlane::train {

// One sample's activations: channels planes of height rows of width floats.
struct ImageShape {
  int channels;
  int height;
  int width;
};

// An array [batch][channels][inner] to which one bias per channel belongs: convolution (inner = height *
// width) and dense layers (inner = 1).
struct BiasShape {
  int batch;
  int channels;
  int inner;
};

// c = op(a) * op(b), or c += where accumulate; all matrices are row by row without gaps, op is the
// transposition where asked for. op(a) is rows x depth, op(b) is depth x columns, c is rows x columns.
struct Gemm {
  int rows;
  int columns;
  int depth;
  const float* a;
  bool transpose_a;
  const float* b;
  bool transpose_b;
  float* c;
  bool accumulate;
};

}  // namespace gradlane::train
