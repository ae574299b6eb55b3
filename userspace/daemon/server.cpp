// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace gradlane {

Result<std::unique_ptr<ControlServer>> ControlServer::listen(const std::string& path, Handler handler) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) {
    return make_error("the path of the control socket is too long: " + path);
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());

  std::unique_ptr<ControlServer> server(new ControlServer(path, std::move(handler)));
  server->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server->epoll_ || !listener) return system_error("make the control socket", path, errno);
  unlink(path.c_str());
  // The mode holds from the first moment on: no one gets in between bind and chmod.
  const mode_t mask = umask(0117);
  const int bound = bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int bind_errno = errno;
  umask(mask);
  if (bound != 0) return system_error("make the control socket", path, bind_errno);
  server->listener_ = std::move(listener);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = server->listener_.get();
  if (::listen(server->listener_.get(), max_clients) != 0 ||
      epoll_ctl(server->epoll_.get(), EPOLL_CTL_ADD, server->listener_.get(), &event) != 0) {
    return system_error("listen on the control socket", path, errno);
  }
  return server;
}

ControlServer::~ControlServer() {
  if (listener_) unlink(path_.c_str());
}

void ControlServer::accept_clients(Clock::time_point now) {
  for (;;) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (clients_.size() >= max_clients) {
      const std::string full = format_answer(make_error("the daemon has too many clients: try again later"));
      send(socket.get(), full.data(), full.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      continue;
    }
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.fd = socket.get();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) continue;
    clients_.push_back({std::move(socket), {}, {}, now + patience, false});
  }
}

// False when there is no more to come: the end, or an error.
bool ControlServer::read_some(Client& client) {
  // One request at a time: while one is here in full, or its answer not gone, the socket's buffer keeps the
  // rest.
  while (client.output.empty() && client.input.find('\n') == std::string::npos &&
         client.input.size() <= longest_request) {
    char buffer[4096];
    const ssize_t count = recv(client.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count == 0) return false;
    if (count > 0) {
      client.input.append(buffer, static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EAGAIN) return true;
    if (errno != EINTR) return false;
  }
  return true;
}

// False on an error.
bool ControlServer::write_some(Client& client) {
  while (!client.output.empty()) {
    const ssize_t count =
        send(client.socket.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      client.output.erase(0, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

// Answers the request at the front of the input, if it is there in full.
void ControlServer::answer(Client& client, Clock::time_point now) {
  const std::size_t end = client.input.find('\n');
  if (end == std::string::npos && client.input.size() <= longest_request) return;
  const auto request = parse_request(std::string_view(client.input).substr(0, end));
  if (end == std::string::npos) {
    client.closing = true;  // there is no telling where the next request begins
    client.input.clear();
  } else {
    client.input.erase(0, end + 1);
  }
  client.output = format_answer(request ? handler_(*request) : Result<nlohmann::json>(request.error()));
  client.deadline = now + patience;
}

// False when the client is done with.
bool ControlServer::serve_client(Client& client, Clock::time_point now) {
  // As many requests as a client can have waiting are few; the limit keeps it from having the daemon for
  // itself.
  constexpr int most_requests = 64;
  for (int round = 0; round < most_requests; ++round) {
    const bool more = read_some(client);
    if (client.output.empty()) answer(client, now);
    const bool answered = !client.output.empty();
    if (!write_some(client)) return false;
    if (!client.output.empty()) return true;  // it is slow: go on when it takes more
    if (client.closing || (!more && !answered)) return false;
    if (!answered) return true;  // the rest of its request is on its way
  }
  return false;
}

void ControlServer::serve(Clock::time_point now) {
  epoll_event events[max_clients + 1];
  const int count = epoll_wait(epoll_.get(), events, max_clients + 1, 0);
  bool knock = false;
  for (int at = 0; at < count; ++at) {
    if (events[at].data.fd == listener_.get()) {
      knock = true;
      continue;
    }
    std::erase_if(clients_, [&](Client& client) {
      return client.socket.get() == events[at].data.fd && !serve_client(client, now);
    });
  }
  // Last: a descriptor that was closed above may be reused for a new client.
  if (knock) accept_clients(now);
}

void ControlServer::expire(Clock::time_point now) {
  const std::size_t ended =
      std::erase_if(clients_, [&](const Client& client) { return client.deadline <= now; });
  if (ended > 0) spdlog::debug("ended {} control clients that were too slow", ended);
}

}  // namespace gradlane
