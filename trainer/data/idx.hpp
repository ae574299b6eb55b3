// SPDX-License-Identifier: Apache-2.0
// The IDX files of the MNIST family: a big-endian header with the sizes, then unsigned bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane::train {

// What a file holds: items of height x width bytes each (labels: 1 x 1).
struct Idx {
  std::size_t items = 0;
  std::size_t height = 1;
  std::size_t width = 1;
  std::vector<std::uint8_t> values;  // items * height * width
};

// The kinds of file that we read, told apart by their magic number.
enum class IdxKind : std::uint8_t {
  kLabels = 1,  // idx1: one byte an item
  kImages = 3,  // idx3: one picture an item
};

// Most that a header may claim; a larger one is taken as corrupt.
inline constexpr std::size_t kMaxIdxItems = 10'000'000;
inline constexpr std::size_t kMaxIdxSide = 1024;                    // pixels
inline constexpr std::size_t kMaxIdxBytes = std::size_t{2} << 30U;  // of all items together

// Reads the first `limit` items (0: all) of a file, gzip or raw. Memory grows with what was decompressed, not
// with what the header claims. Errors name the file, what is wrong, and what to do.
Result<Idx> read_idx(const std::string& file, IdxKind kind, std::size_t limit);

}  // namespace gradlane::train
