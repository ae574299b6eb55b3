// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "files.hpp"

namespace gradlane::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  void write(std::uint32_t images, const Bytes& labels) {
    folder_.write("train-images-idx3-ubyte.gz", gzip(images_file(images, 2, 3, images * std::size_t{6})));
    folder_.write("train-labels-idx1-ubyte", labels_file(labels));
  }

  TemporaryFolder folder_;
};

TEST_F(DatasetTest, LoadsRawAndGzip) {
  write(4, {9, 0, 3, 1});
  const auto all = load_dataset(folder_.path(), "train", 0);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->count, 4U);
  EXPECT_EQ(all->classes, 10U);
  EXPECT_EQ(all->image_size(), 6U);
  EXPECT_EQ(all->labels, (Bytes{9, 0, 3, 1}));

  const auto some = load_dataset(folder_.path(), "train", 3);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->count, 3U);
  EXPECT_EQ(some->labels.size(), 3U);
  EXPECT_EQ(some->pixels.size(), 18U);
}

TEST_F(DatasetTest, SelectsAsFloats) {
  write(4, {9, 0, 3, 1});
  const auto dataset = load_dataset(folder_.path(), "train", 0);
  ASSERT_TRUE(dataset) << dataset.error().message;
  const std::array<std::uint32_t, 3> indices{2, 0, 2};
  std::vector<float> images(18);
  Bytes labels(3);
  select(*dataset, indices, images, labels);
  EXPECT_EQ(labels, (Bytes{3, 9, 3}));
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(images[i], static_cast<float>(static_cast<std::uint8_t>((12 + i) * 7)) / 255.0F);
    EXPECT_FLOAT_EQ(images[6 + i], static_cast<float>(i * 7) / 255.0F);
    EXPECT_EQ(images[12 + i], images[i]);
  }
}

TEST_F(DatasetTest, ExplainsMissingFiles) {
  const auto dataset = load_dataset(folder_.path(), "t10k", 0);
  ASSERT_FALSE(dataset);
  EXPECT_THAT(dataset.error().message,
              AllOf(HasSubstr("t10k-images-idx3-ubyte"), HasSubstr("install Debian's dataset-fashion-mnist"),
                    HasSubstr("--data")));
}

TEST_F(DatasetTest, ExplainsUnreadableFiles) {
  write(1, {1});
  std::filesystem::create_directory(folder_.path() + "/train-labels-idx1-ubyte.gz");
  const auto dataset = load_dataset(folder_.path(), "train", 0);
  ASSERT_FALSE(dataset);
  EXPECT_THAT(dataset.error().message, AllOf(HasSubstr("train-labels-idx1-ubyte.gz"), HasSubstr("--data")));
}

TEST_F(DatasetTest, RefusesDifferentCounts) {
  write(4, {9, 0, 3});
  for (const std::size_t limit : {std::size_t{0}, std::size_t{4}}) {
    const auto dataset = load_dataset(folder_.path(), "train", limit);
    ASSERT_FALSE(dataset);
    EXPECT_THAT(dataset.error().message, AllOf(HasSubstr("4 images"), HasSubstr("3 labels")));
  }
}

TEST_F(DatasetTest, RefusesLabelOutOfRange) {
  write(4, {9, 0, 10, 1});
  const auto dataset = load_dataset(folder_.path(), "train", 0);
  ASSERT_FALSE(dataset);
  EXPECT_THAT(dataset.error().message, HasSubstr("label 10 of image 2 is not 0..9"));
}

}  // namespace
}  // namespace gradlane::train
