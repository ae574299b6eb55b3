// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "temporary_folder.hpp"

namespace gradlane {
namespace {

using Clock = ControlServer::Clock;

class Server : public testing::Test {
 protected:
  Server() : path_(folder_.path() + "/x.sock") {
    auto server = ControlServer::listen(path_, [this](const Request& request) -> Result<nlohmann::json> {
      ++handled_;
      if (request.command == Command::stop) return make_error("no");
      return nlohmann::json{{"text", std::string(answer_size_, 'x')}};
    });
    if (server) server_ = std::move(*server);
  }
  void SetUp() override { ASSERT_NE(server_, nullptr); }

  Fd connect() {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      socket.reset();
    return socket;
  }
  // Lets the server do whatever is to do, at the time now_.
  void turn() {
    for (int round = 0; round < 3; ++round) server_->serve(now_);
    server_->expire(now_);
  }
  static ssize_t put(const Fd& socket, const std::string& text) {
    return send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // All that is there now; "EOF" is appended at the end.
  static std::string get(const Fd& socket) {
    std::string text;
    char buffer[4096];
    for (;;) {
      const ssize_t count = recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
      if (count == 0) return text + "EOF";
      if (count < 0) return text;
    }
  }

  TemporaryFolder folder_;
  std::string path_;
  Clock::time_point now_{std::chrono::hours(1)};
  std::size_t answer_size_ = 3;
  int handled_ = 0;
  std::unique_ptr<ControlServer> server_;
};

const std::string status_line = format_request({Command::status, "", GL_LANES});
const std::string good_answer = format_answer(nlohmann::json{{"text", "xxx"}});

TEST_F(Server, SocketIsForOwnerAndGroupAndGoesWithTheServer) {
  struct stat state{};
  ASSERT_EQ(stat(path_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0660U);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Server, SocketOfACrashIsReplaced) {
  auto second = ControlServer::listen(path_, [](const Request&) { return nlohmann::json(2); });
  ASSERT_TRUE(second) << second.error().message;
  const Fd client = connect();
  EXPECT_TRUE(client);
}

TEST_F(Server, AnswersEveryRequestInOrder) {
  const Fd client = connect();
  turn();
  put(client, status_line + format_request({Command::stop, "", GL_LANES}) + status_line + "nonsense\n");
  turn();
  const std::string answers = get(client);
  EXPECT_EQ(answers.rfind(good_answer + format_answer(make_error("no")) + good_answer, 0), 0U) << answers;
  EXPECT_NE(answers.find("no JSON object"), std::string::npos) << answers;
  EXPECT_EQ(handled_, 3);
}

TEST_F(Server, ByteByByteIsFineWithinTheTime) {
  const Fd client = connect();
  for (const char c : status_line) {
    put(client, std::string(1, c));
    turn();
  }
  EXPECT_EQ(get(client), good_answer);
}

TEST_F(Server, ClientMayEndItsSideAtOnce) {
  const Fd client = connect();
  put(client, status_line);
  shutdown(client.get(), SHUT_WR);
  turn();
  EXPECT_EQ(get(client), good_answer + "EOF");
}

TEST_F(Server, SlowClientIsEndedAndOthersAreServed) {
  const Fd slow = connect();
  const Fd silent = connect();
  put(slow, status_line.substr(0, 5));
  turn();
  now_ += ControlServer::patience - std::chrono::milliseconds(1);
  const Fd quick = connect();
  put(quick, status_line);
  turn();
  EXPECT_EQ(get(quick), good_answer);
  EXPECT_EQ(get(slow), "");
  now_ += std::chrono::milliseconds(1);
  turn();
  EXPECT_EQ(get(slow), "EOF");
  EXPECT_EQ(get(silent), "EOF");
  put(quick, status_line);
  turn();
  EXPECT_EQ(get(quick), good_answer);
}

TEST_F(Server, ClientThatDoesNotReadHoldsNobodyUp) {
  answer_size_ = 4 << 20;  // more than a socket takes
  const Fd deaf = connect();
  put(deaf, status_line + status_line);
  turn();
  EXPECT_EQ(handled_, 1) << "the next request waits until the first answer is gone";
  answer_size_ = 3;
  const Fd other = connect();
  put(other, status_line);
  turn();
  EXPECT_EQ(get(other), good_answer);
  // It reads late, but in time: everything arrives.
  std::string all;
  for (int round = 0; round < 200; ++round) {
    all += get(deaf);
    turn();
  }
  EXPECT_GT(all.size(), std::size_t{4 << 20});
  EXPECT_EQ(all.substr(all.size() - good_answer.size()), good_answer);
}

TEST_F(Server, EndlessRequestIsRefused) {
  const Fd client = connect();
  turn();
  std::string answer;
  for (int round = 0; round < 100 && answer.empty(); ++round) {
    put(client, std::string(4096, 'a'));
    turn();
    answer = get(client);
  }
  EXPECT_NE(answer.find("longer than 64 KiB"), std::string::npos) << answer;
  turn();
  EXPECT_EQ(answer.substr(answer.size() - 3), "EOF");
}

TEST_F(Server, TooManyClientsAreTurnedAway) {
  std::vector<Fd> clients;
  for (std::size_t client = 0; client < ControlServer::max_clients; ++client) {
    clients.push_back(connect());
    turn();
  }
  const Fd extra = connect();
  turn();
  EXPECT_NE(get(extra).find("too many clients"), std::string::npos);
  clients.pop_back();
  turn();
  const Fd next = connect();
  put(next, status_line);
  turn();
  EXPECT_EQ(get(next), good_answer) << "a place is free again";
}

TEST_F(Server, ReadyDescriptorTellsWhenThereIsSomethingToDo) {
  pollfd ready{server_->ready_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  const Fd client = connect();
  EXPECT_EQ(poll(&ready, 1, 1000), 1);
  turn();
  EXPECT_EQ(poll(&ready, 1, 0), 0) << "no busy loop over an idle client";
  put(client, status_line);
  EXPECT_EQ(poll(&ready, 1, 1000), 1);
  turn();
  EXPECT_EQ(poll(&ready, 1, 0), 0);
}

}  // namespace
}  // namespace gradlane
