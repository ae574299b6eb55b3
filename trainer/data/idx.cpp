// SPDX-License-Identifier: Apache-2.0
#include "data/idx.hpp"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <span>

#include "core/fd.hpp"

namespace gradlane::train {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18U;
constexpr const char* kAdvice = "; install the dataset again or name another folder with --data";

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using Gzip = std::unique_ptr<gzFile_s, CloseGzip>;

Error corrupt(const std::string& file, const std::string& what) {
  return make_error(file + " is corrupt: " + what + kAdvice);
}

Result<Gzip> open_file(const std::string& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("read", file, errno);
  Gzip gzip(gzdopen(fd.get(), "rb"));
  if (!gzip) return make_error("cannot read " + file + ": out of memory");
  (void)fd.release();  // gzclose closes it
  return gzip;
}

// Fills `to` as far as the file goes; the number of bytes read.
Result<std::size_t> read_bytes(gzFile gzip, const std::string& file, std::span<std::uint8_t> to) {
  std::size_t have = 0;
  while (have < to.size()) {
    const auto want = static_cast<unsigned>(std::min(to.size() - have, kChunk));
    const int got = gzread(gzip, to.data() + have, want);
    if (got > 0) {
      have += static_cast<std::size_t>(got);
      continue;
    }
    int code = Z_OK;
    const char* why = gzerror(gzip, &code);
    if (got == 0 && (code == Z_OK || code == Z_BUF_ERROR)) break;  // the end, or a cut gzip stream
    if (code == Z_ERRNO) return system_error("read", file, errno);
    return corrupt(file, std::string("decompression says ") + why);
  }
  return have;
}

std::size_t big_endian(std::span<const std::uint8_t, 4> bytes) {
  return (std::size_t{bytes[0]} << 24U) | (std::size_t{bytes[1]} << 16U) | (std::size_t{bytes[2]} << 8U) |
         bytes[3];
}

Error wrong_magic(gzFile gzip, const std::string& file, IdxKind kind, std::span<const std::uint8_t> magic) {
  if (file.ends_with(".gz") && gzdirect(gzip) != 0) {
    return make_error(file + " is not gzip data although its name ends in .gz" + kAdvice);
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%02x %02x %02x %02x instead of 00 00 08 %02x", magic[0], magic[1],
                magic[2], magic[3], static_cast<unsigned>(kind));
  return make_error(file + " is not an IDX file of " + (kind == IdxKind::kLabels ? "labels" : "images") +
                    ": it starts with " + text.data() + kAdvice);
}

// Reads and checks the header: the sizes of the file, no values yet.
Result<Idx> read_header(gzFile gzip, const std::string& file, IdxKind kind) {
  const auto rank = static_cast<std::size_t>(kind);
  std::array<std::uint8_t, 16> bytes{};
  const auto header = std::span(bytes).first(4 + 4 * rank);
  const auto got = read_bytes(gzip, file, header);
  if (!got) return got.error();
  if (*got < header.size()) {
    return corrupt(file, "it ends after " + std::to_string(*got) + " bytes, inside the header");
  }
  if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != rank) {
    return wrong_magic(gzip, file, kind, header.first(4));
  }
  Idx idx;
  idx.items = big_endian(header.subspan<4, 4>());
  if (kind == IdxKind::kImages) {
    idx.height = big_endian(header.subspan<8, 4>());
    idx.width = big_endian(header.subspan<12, 4>());
  }
  if (idx.items == 0 || idx.items > kMaxIdxItems || idx.height == 0 || idx.height > kMaxIdxSide ||
      idx.width == 0 || idx.width > kMaxIdxSide || idx.items * idx.height * idx.width > kMaxIdxBytes) {
    return corrupt(file, "its header claims " + std::to_string(idx.items) + " items of " +
                             std::to_string(idx.height) + " x " + std::to_string(idx.width) +
                             " bytes, but 1.." + std::to_string(kMaxIdxItems) + " items of sides 1.." +
                             std::to_string(kMaxIdxSide) + ", at most 2 GiB in all, are possible");
  }
  return idx;
}

}  // namespace

Result<Idx> read_idx(const std::string& file, IdxKind kind, std::size_t limit) {
  auto gzip = open_file(file);
  if (!gzip) return gzip.error();
  auto header = read_header(gzip->get(), file, kind);
  if (!header) return header.error();
  Idx idx = std::move(*header);
  const bool all = limit == 0 || limit >= idx.items;
  const std::size_t claimed = idx.items;
  if (!all) idx.items = limit;

  const std::size_t total = idx.items * idx.height * idx.width;
  while (idx.values.size() < total) {
    const std::size_t have = idx.values.size();
    const std::size_t want = std::min(total - have, kChunk);
    idx.values.resize(have + want);
    const auto got = read_bytes(gzip->get(), file, std::span(idx.values).subspan(have));
    if (!got) return got.error();
    if (*got < want) {
      return corrupt(file, "it ends after " + std::to_string((have + *got) / (idx.height * idx.width)) +
                               " of the " + std::to_string(claimed) + " items that its header claims");
    }
  }
  if (all) {
    // Reading past the last item also makes zlib compare the checksum.
    std::array<std::uint8_t, 1> more{};
    const auto got = read_bytes(gzip->get(), file, more);
    if (!got) return got.error();
    if (*got != 0) return corrupt(file, "it goes on after the last item that its header claims");
    int code = Z_OK;
    gzerror(gzip->get(), &code);
    if (code == Z_BUF_ERROR) return corrupt(file, "the end of the gzip data is missing");
  }
  return idx;
}

}  // namespace gradlane::train
