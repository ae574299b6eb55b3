// SPDX-License-Identifier: Apache-2.0
#include "sync/byte_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/fd.hpp"

namespace gradlane::train {

std::string byte_log_line(const Connection& connection, const std::string& role, std::uint32_t rank) {
  return nlohmann::ordered_json{{"role", role},
                                {"rank", rank},
                                {"lane", connection.lane()},
                                {"tag", connection.tag()},
                                {"local", connection.local().host()},
                                {"local_port", connection.local().port()},
                                {"remote", connection.remote().host()},
                                {"remote_port", connection.remote().port()},
                                {"content", role == "server" ? "parameters" : "gradients"},
                                {"slice_bytes", connection.sent().slices},
                                {"slice_header_bytes", connection.sent().slice_headers},
                                {"control_bytes", connection.sent().control}}
      .dump();
}

Status write_lines(const std::string& path, const std::vector<std::string>& lines) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return system_error("open for writing", path, errno);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("write", path, errno);
    done += static_cast<std::size_t>(count);
  }
  // Some file systems report a full disk only here.
  if (::close(fd.release()) != 0) return system_error("write", path, errno);
  return {};
}

}  // namespace gradlane::train
