// SPDX-License-Identifier: Apache-2.0
#include "core/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "core/fd.hpp"

namespace gradlane {

Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t most = 4 << 20;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("read", path, errno);
  std::string text;
  char buffer[4096];
  while (text.size() < most) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path, errno);
    if (count == 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

Status write_file(const std::string& path, const std::string& text) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return system_error("write", path, errno);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return system_error("write", path, errno);
  }
  return {};
}

}  // namespace gradlane
