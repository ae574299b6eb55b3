// SPDX-License-Identifier: Apache-2.0
#include "data/idx.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.hpp"

namespace gradlane::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class IdxTest : public ::testing::Test {
 protected:
  // The error of reading such a file of images; it must name the file and say what to do.
  std::string error_of(const std::string& name, const Bytes& bytes) {
    const std::string file = folder_.write(name, bytes);
    const auto idx = read_idx(file, IdxKind::kImages, 0);
    if (idx) return "no error";
    EXPECT_THAT(idx.error().message, AllOf(HasSubstr(file), HasSubstr("another folder with --data")));
    return idx.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(IdxTest, ReadsRawAndGzipAlike) {
  const Bytes bytes = images_file(5, 3, 4, 60);
  const std::string raw = folder_.write("raw", bytes);
  const std::string zipped = folder_.write("zipped.gz", gzip(bytes));
  for (const std::string& file : {raw, zipped}) {
    for (const std::size_t limit : {std::size_t{0}, std::size_t{2}, std::size_t{5}, std::size_t{9}}) {
      const auto idx = read_idx(file, IdxKind::kImages, limit);
      ASSERT_TRUE(idx) << idx.error().message;
      const std::size_t items = limit == 0 ? 5 : std::min<std::size_t>(limit, 5);
      EXPECT_EQ(idx->items, items);
      EXPECT_EQ(idx->height, 3U);
      EXPECT_EQ(idx->width, 4U);
      EXPECT_EQ(idx->values, Bytes(bytes.begin() + 16, bytes.begin() + 16 + static_cast<long>(items) * 12));
    }
  }
}

TEST_F(IdxTest, ReadsMoreThanOneChunk) {
  const Bytes bytes = images_file(1000, 28, 28, 784000);
  const auto idx = read_idx(folder_.write("many.gz", gzip(bytes)), IdxKind::kImages, 0);
  ASSERT_TRUE(idx) << idx.error().message;
  EXPECT_TRUE(std::equal(idx->values.begin(), idx->values.end(), bytes.begin() + 16, bytes.end()));
}

// Wherever a file is cut, raw or gzip, there is an error and no crash.
TEST_F(IdxTest, RefusesEveryTruncation) {
  const Bytes raw = images_file(3, 2, 2, 12);
  const Bytes zipped = gzip(raw);
  for (std::size_t size = 0; size < raw.size(); ++size) {
    EXPECT_NE(error_of("cut", Bytes(raw.begin(), raw.begin() + static_cast<long>(size))), "no error") << size;
  }
  for (std::size_t size = 0; size < zipped.size(); ++size) {
    EXPECT_NE(error_of("cut.gz", Bytes(zipped.begin(), zipped.begin() + static_cast<long>(size))), "no error")
        << size;
  }
}

TEST_F(IdxTest, SaysWhereTheItemsEnd) {
  EXPECT_THAT(error_of("short", images_file(3, 2, 2, 9)), HasSubstr("ends after 2 of the 3 items"));
  EXPECT_THAT(error_of("long", images_file(3, 2, 2, 13)), HasSubstr("goes on after the last item"));
}

TEST_F(IdxTest, RefusesWrongMagic) {
  EXPECT_THAT(error_of("labels", labels_file(Bytes(20))), HasSubstr("00 00 08 01 instead of 00 00 08 03"));
  EXPECT_THAT(error_of("html.gz", Bytes(100, '<')),
              HasSubstr("is not gzip data although its name ends in .gz"));
}

// Fails fast and without memory for what the header claims: 4 TiB could not be allocated.
TEST_F(IdxTest, RefusesHugeHeader) {
  EXPECT_THAT(error_of("huge", images_file(0xffffffffU, 1024, 1024, 10)),
              HasSubstr("claims 4294967295 items"));
  EXPECT_THAT(error_of("wide", images_file(1, 1, 2000, 2000)), HasSubstr("1 x 2000"));
  EXPECT_THAT(error_of("large", images_file(10'000'000, 1024, 1024, 10)), HasSubstr("2 GiB"));
  EXPECT_THAT(error_of("none", images_file(0, 28, 28, 0)), HasSubstr("claims 0 items"));
}

TEST_F(IdxTest, RefusesDamagedGzip) {
  Bytes bytes = gzip(images_file(50, 5, 5, 1250));
  bytes[bytes.size() - 6] ^= 0xffU;  // the checksum
  EXPECT_THAT(error_of("checksum.gz", bytes), HasSubstr("decompression says"));
}

TEST_F(IdxTest, NamesWhatCannotBeRead) {
  const auto missing = read_idx(folder_.path() + "/missing", IdxKind::kLabels, 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  const auto directory = read_idx(folder_.path(), IdxKind::kLabels, 0);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr(folder_.path()));
}

}  // namespace
}  // namespace gradlane::train
