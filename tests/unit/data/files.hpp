// SPDX-License-Identifier: Apache-2.0
// Files for the tests of readers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gradlane::train {

using Bytes = std::vector<std::uint8_t>;

// A folder that lives as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "gradlane-data-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

  std::string write(const std::string& name, const Bytes& bytes) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file;
  }

 private:
  std::string path_;
};

inline Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(deflateBound(&stream, bytes.size()) + 32);
  stream.next_in = const_cast<std::uint8_t*>(bytes.data());
  stream.avail_in = static_cast<unsigned>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<unsigned>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline void append_number(Bytes& bytes, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

// An idx3 file whose pixels count up, with a header that says what it is told to.
inline Bytes images_file(std::uint32_t items, std::uint32_t height, std::uint32_t width, std::size_t values) {
  Bytes bytes{0, 0, 8, 3};
  for (const std::uint32_t size : {items, height, width}) append_number(bytes, size);
  for (std::size_t i = 0; i < values; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7));
  return bytes;
}

inline Bytes labels_file(const Bytes& labels) {
  Bytes bytes{0, 0, 8, 1};
  append_number(bytes, static_cast<std::uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

}  // namespace gradlane::train
