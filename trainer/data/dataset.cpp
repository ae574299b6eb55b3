// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <unistd.h>

#include <algorithm>

#include "data/idx.hpp"

namespace gradlane::train {
namespace {

constexpr std::size_t kClasses = 10;

// The file with or without .gz, whichever is there.
Result<std::string> find_file(const std::string& folder, const std::string& name) {
  const std::string raw = folder + "/" + name;
  for (const std::string& file : {raw + ".gz", raw}) {
    if (::access(file.c_str(), F_OK) == 0) return file;
  }
  return make_error("there is no dataset file " + raw +
                    ".gz: install Debian's dataset-fashion-mnist or name another folder with --data");
}

Result<Idx> read_part(const std::string& file, IdxKind kind, std::size_t limit) {
  auto idx = read_idx(file, kind, limit);
  if (!idx && idx.error().code != 0) {
    return Error{idx.error().message + "; make the file readable or name another folder with --data",
                 idx.error().code};
  }
  return idx;
}

}  // namespace

Result<Dataset> load_dataset(const std::string& folder, const std::string& part, std::size_t limit) {
  const auto images_file = find_file(folder, part + "-images-idx3-ubyte");
  if (!images_file) return images_file.error();
  const auto labels_file = find_file(folder, part + "-labels-idx1-ubyte");
  if (!labels_file) return labels_file.error();
  // Labels are small: all of them are read, so that the counts of both files can be compared.
  auto labels = read_part(*labels_file, IdxKind::kLabels, 0);
  if (!labels) return labels.error();
  auto images = read_part(*images_file, IdxKind::kImages, limit);
  if (!images) return images.error();
  const std::size_t expected = limit == 0 ? labels->items : std::min(limit, labels->items);
  if (images->items != expected) {
    return make_error(*images_file + " has " + std::to_string(images->items) + " images but " + *labels_file +
                      " has " + std::to_string(labels->items) +
                      " labels: take both files from the same dataset or install it again");
  }
  labels->values.resize(images->items);
  for (std::size_t i = 0; i < labels->values.size(); ++i) {
    if (labels->values[i] >= kClasses) {
      return make_error(*labels_file + " is corrupt: label " + std::to_string(labels->values[i]) +
                        " of image " + std::to_string(i) + " is not 0.." + std::to_string(kClasses - 1) +
                        "; install the dataset again or name another folder with --data");
    }
  }
  Dataset dataset;
  dataset.pixels = std::move(images->values);
  dataset.labels = std::move(labels->values);
  dataset.count = images->items;
  dataset.height = images->height;
  dataset.width = images->width;
  dataset.classes = kClasses;
  return dataset;
}

void select(const Dataset& dataset, std::span<const std::uint32_t> indices, std::span<float> images,
            std::span<std::uint8_t> labels) {
  const std::size_t size = dataset.image_size();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::uint8_t* from = dataset.pixels.data() + indices[i] * size;
    std::transform(from, from + size, images.begin() + static_cast<std::ptrdiff_t>(i * size),
                   [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
    labels[i] = dataset.labels[indices[i]];
  }
}

}  // namespace gradlane::train
