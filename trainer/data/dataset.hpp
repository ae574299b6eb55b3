// SPDX-License-Identifier: Apache-2.0
// Labelled pictures in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane::train {

// Where Debian's dataset-fashion-mnist puts its files.
inline constexpr const char* kDefaultDataFolder = "/usr/share/datasets/fashion-mnist";

// Pictures (one channel) and what they show. Pixels stay bytes, a quarter of the memory of floats, for a
// demonstration runs nine trainers on one machine; select() gives floats.
struct Dataset {
  std::vector<std::uint8_t> pixels;  // count * height * width, rows of one picture after another; 0..255
  std::vector<std::uint8_t> labels;  // count; 0..classes-1
  std::size_t count = 0;
  std::size_t height = 0;   // pixels
  std::size_t width = 0;    // pixels
  std::size_t classes = 0;  // 10 in the MNIST family

  std::size_t image_size() const { return height * width; }
};

// Reads {part}-images-idx3-ubyte(.gz) and {part}-labels-idx1-ubyte(.gz) of a folder; part is "train" or
// "t10k". Only the first `limit` pictures are kept (0: all). Errors are one sentence with the file and what
// to do.
Result<Dataset> load_dataset(const std::string& folder, const std::string& part, std::size_t limit);

// Copies the pictures with these indices as floats 0..1 (NCHW, one channel) and their labels, in that order.
// images holds indices.size() * image_size() floats, labels indices.size().
void select(const Dataset& dataset, std::span<const std::uint32_t> indices, std::span<float> images,
            std::span<std::uint8_t> labels);

}  // namespace gradlane::train
