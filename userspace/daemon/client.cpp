// SPDX-License-Identifier: Apache-2.0
#include "daemon/client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "core/fd.hpp"

namespace gradlane {
namespace {

using Clock = std::chrono::steady_clock;

// Waits until the socket is ready for events; an error after the deadline.
Status wait_for(int socket, short events, Clock::time_point deadline, const std::string& path) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wanted{socket, events, 0};
    const int ready = left.count() > 0 ? poll(&wanted, 1, static_cast<int>(left.count())) : 0;
    if (ready > 0) return {};
    if (ready == 0) {
      return Error{"the daemon at " + path + " does not answer: see its log", ETIMEDOUT};
    }
    if (errno != EINTR) return system_error("wait for the daemon at", path, errno);
  }
}

}  // namespace

Result<nlohmann::json> ask(const std::string& path, const Request& request,
                           std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path)
    return make_error("the path of the control socket is too long: " + path);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("make a socket for", path, errno);
  // A full queue (EAGAIN) is a daemon that does not accept.
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    Error error = system_error("reach the daemon at", path, errno == EAGAIN ? ETIMEDOUT : errno);
    if (error.code == ENOENT || error.code == ECONNREFUSED) {
      error.message = "no daemon answers at " + path + ": start gradlaned, or name another --instance";
    } else if (error.code == EACCES) {
      error.message += "; run this as root or as a member of the socket's group";
    }
    return error;
  }
  std::string line = format_request(request);
  while (!line.empty()) {
    if (const Status ready = wait_for(socket.get(), POLLOUT, deadline, path); !ready) return ready.error();
    const ssize_t count = send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return system_error("ask the daemon at", path, errno);
    if (count > 0) line.erase(0, static_cast<std::size_t>(count));
  }
  std::string answer;
  while (answer.find('\n') == std::string::npos) {
    if (const Status ready = wait_for(socket.get(), POLLIN, deadline, path); !ready) return ready.error();
    char buffer[4096];
    const ssize_t count = recv(socket.get(), buffer, sizeof buffer, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return system_error("hear the daemon at", path, errno);
    if (count == 0) return Error{"the daemon at " + path + " went away while it was asked", ECONNREFUSED};
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  return parse_answer(std::string_view(answer).substr(0, answer.find('\n')));
}

}  // namespace gradlane
