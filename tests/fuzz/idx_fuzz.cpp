// SPDX-License-Identifier: Apache-2.0
// links: gl_train_data
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/fd.hpp"
#include "data/idx.hpp"

// Reads any bytes as a dataset file; what is accepted must be as long as it says.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gradlane::train::IdxKind;
  const gradlane::Fd memory(memfd_create("idx", MFD_CLOEXEC));
  if (!memory || ::write(memory.get(), data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string file = "/proc/self/fd/" + std::to_string(memory.get());
  for (const IdxKind kind : {IdxKind::kLabels, IdxKind::kImages}) {
    for (const std::size_t limit : {std::size_t{0}, std::size_t{3}}) {
      const auto idx = gradlane::train::read_idx(file, kind, limit);
      if (idx && idx->values.size() != idx->items * idx->height * idx->width) std::abort();
      if (!idx && idx.error().message.empty()) std::abort();
    }
  }
  return 0;
}
