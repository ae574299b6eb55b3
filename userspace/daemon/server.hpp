// SPDX-License-Identifier: Apache-2.0
// The control socket: answers requests without ever waiting for a client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "daemon/protocol.hpp"

namespace gradlane {

class ControlServer {
 public:
  using Clock = std::chrono::steady_clock;
  using Handler = std::function<Result<nlohmann::json>(const Request&)>;

  // Clients beyond this are turned away with a sentence.
  static constexpr std::size_t max_clients = 16;
  // A client must have sent its request and taken its answer within this.
  static constexpr std::chrono::seconds patience{5};

  // Listens at path, mode 0660, replacing a socket that a crash left there; the caller holds the instance's
  // lock. Every request goes through handler.
  static Result<std::unique_ptr<ControlServer>> listen(const std::string& path, Handler handler);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  // Removes the socket.
  ~ControlServer();

  // Becomes readable (it is an epoll set) when serve() has something to do.
  int ready_fd() const { return epoll_.get(); }
  // Does what can be done without waiting.
  void serve(Clock::time_point now);
  // Ends clients that were too slow; to be called about once a second.
  void expire(Clock::time_point now);

 private:
  struct Client {
    Fd socket;
    std::string input;   // what has come of requests that are not answered yet
    std::string output;  // what has to be sent yet
    Clock::time_point deadline;
    bool closing = false;  // after the output
  };

  ControlServer(std::string path, Handler handler) : path_(std::move(path)), handler_(std::move(handler)) {}
  void accept_clients(Clock::time_point now);
  bool read_some(Client& client);
  bool write_some(Client& client);
  void answer(Client& client, Clock::time_point now);
  bool serve_client(Client& client, Clock::time_point now);

  std::string path_;
  Handler handler_;
  Fd epoll_;
  Fd listener_;
  std::vector<Client> clients_;
};

}  // namespace gradlane
