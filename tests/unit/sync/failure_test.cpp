// SPDX-License-Identifier: Apache-2.0
// What happens when something goes wrong: one sentence, and nobody waits for ever.
#include <gtest/gtest.h>

#include "fake.hpp"

namespace gradlane::train {
namespace {

using ::testing::AssertionResult;

AssertionResult says(const Result<Ending>& ending, const std::string& part) {
  if (ending) return ::testing::AssertionFailure() << "it ended well";
  if (ending.error().message.find(part) == std::string::npos)
    return ::testing::AssertionFailure() << "it says: " << ending.error().message;
  return ::testing::AssertionSuccess();
}

std::deque<Command> endless() {
  return {{.kind = Command::Kind::run, .steps = 100'000'000}, {.kind = Command::Kind::finish}};
}

// A worker that joins and then does nothing.
RawPeer join_as(const Address& address, std::uint32_t rank) {
  RawPeer peer(address);
  peer.send({.type = MessageType::join}, encode_rank(rank));
  return peer;
}

TEST(Failure, ALostWorkerIsNamedToAll) {
  FakeServer server(fake_setup(2, "wfbp", 1), "127.0.0.1:0", endless());
  const Address address = server.start();
  auto worker = start_worker(address, 0);
  RawPeer lost = join_as(address, 1);
  ASSERT_TRUE(lost.receive());  // the first parameters: all have joined
  lost.close();
  EXPECT_TRUE(says(server.wait(), "worker 1 ("));
  EXPECT_TRUE(says(worker.get(), "worker 1 ("));
}

TEST(Failure, ALostServerEndsTheWorkers) {
  // Gone without a word, like one that was killed.
  const auto listener = listen_on(*parse_address("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  const Address address = *local_address(listener->get());
  auto worker = start_worker(address, 0);
  const auto accept_one = [&] {
    for (;;) {
      const int fd = ::accept(listener->get(), nullptr, nullptr);
      if (fd >= 0) return Fd(fd);
      ::usleep(1000);
    }
  };
  Fd asking = accept_one();
  std::array<std::byte, kHeaderBytes + 4> ask{};
  ASSERT_EQ(::recv(asking.get(), ask.data(), ask.size(), MSG_WAITALL), static_cast<ssize_t>(ask.size()));
  TrainingSetup setup = fake_setup(1, "wfbp", 1);
  for (const std::size_t count : layer_parameters(FakeModel())) setup.parameters += count;
  const std::string text = setup_to_json(setup);
  const auto header =
      encode_header({.type = MessageType::setup, .bytes = static_cast<std::uint32_t>(text.size())});
  ASSERT_EQ(::send(asking.get(), header.data(), header.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(header.size()));
  ASSERT_EQ(::send(asking.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  accept_one().reset();
  EXPECT_TRUE(says(worker.get(), "was lost before the end"));
}

TEST(Failure, ASignalEndsAllCleanly) {
  FakeServer server(fake_setup(1, "pwfbp", 4), "127.0.0.1:0", endless());
  const Address address = server.start();
  auto worker = start_worker(address, 0);
  server.recorder.wait_until_ready();
  server.signals.raise(SIGTERM);
  const auto ending = server.wait();
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->signal, SIGTERM);
  EXPECT_FALSE(worker.get());
}

TEST(Failure, ASignalEndsAWorkerThatWaits) {
  FakeSignals signals;
  const Address nobody = *parse_address("127.0.0.1:1");
  auto worker = std::async(std::launch::async, [&]() -> Result<Ending> {
    return run_worker({.server = nobody, .rank = 0, .byte_log = ""}, make_fake_task, signals.fd());
  });
  signals.raise(SIGINT);
  const auto ending = worker.get();
  ASSERT_TRUE(ending) << ending.error().message;
  EXPECT_EQ(ending->signal, SIGINT);
}

TEST(Failure, NoServerIsReported) {
  const FakeSignals signals;
  const auto ending = run_worker({.server = *parse_address("127.0.0.1:1"),
                                  .rank = 0,
                                  .byte_log = "",
                                  .connect_limit = std::chrono::seconds(1)},
                                 make_fake_task, signals.fd());
  EXPECT_TRUE(says(ending, "no server answers at 127.0.0.1:1"));
}

TEST(Failure, APortInUseIsReported) {
  const auto listener = listen_on(*parse_address("[::1]:0"));
  ASSERT_TRUE(listener);
  const std::string address = local_address(listener->get())->text();
  const auto second = listen_on(*parse_address(address));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(address + " is in use"), std::string::npos) << second.error().message;
}

TEST(Failure, MissingWorkersAreNamed) {
  FakeServer server(fake_setup(3, "wfbp", 1));
  server.options().wait = std::chrono::seconds(1);
  const Address address = server.start();
  RawPeer only = join_as(address, 1);
  EXPECT_TRUE(says(server.wait(), "workers 0, 2 did not connect within 1 s"));
}

TEST(Failure, StrangersDoNotDisturb) {
  FakeServer server(fake_setup(2, "pwfbp", 4));
  const Address address = server.start();

  RawPeer stranger(address);
  const std::string request = "GET / HTTP/1.1\r\nHost: there\r\n\r\n";
  stranger.send(std::as_bytes(std::span(request)));
  EXPECT_NE(stranger.refusal().find("no gradlane-train"), std::string::npos);

  RawPeer older(address);
  auto header = encode_header({.type = MessageType::ask, .bytes = 4});
  header[4] = std::byte{kWireVersion + 1};
  older.send(header);
  EXPECT_NE(older.refusal().find("install the same gradlane on all hosts"), std::string::npos);

  RawPeer impatient(address);
  impatient.send({.type = MessageType::report, .step = 0}, encode_report({.samples = 1}));
  EXPECT_NE(impatient.refusal().find("nobody asked for"), std::string::npos);

  RawPeer no_rank(address);
  no_rank.send({.type = MessageType::ask}, encode_rank(2));
  EXPECT_NE(no_rank.refusal().find("there is no rank 2"), std::string::npos);

  RawPeer gone(address);
  gone.close();

  auto one = start_worker(address, 0);
  auto other = start_worker(address, 1);
  const auto ending = server.wait();
  ASSERT_TRUE(ending) << ending.error().message;
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
}

TEST(Failure, ARankIsTakenOnce) {
  FakeServer server(fake_setup(2, "wfbp", 1));
  const Address address = server.start();
  RawPeer first = join_as(address, 0);
  RawPeer second = join_as(address, 0);
  // Whichever came second.
  EXPECT_NE(second.refusal().find("rank 0 is taken"), std::string::npos);
  EXPECT_TRUE(says(start_worker(address, 0).get(), "rank 0 is taken"));
  first.close();
  // A worker that left before the start may come back.
  std::optional<Result<Ending>> again;
  for (;;) {
    RawPeer trial(address);
    trial.send({.type = MessageType::ask}, encode_rank(0));
    const auto answer = trial.receive();
    ASSERT_TRUE(answer);
    if (answer->first.type == MessageType::setup) break;
  }
  auto one = start_worker(address, 0);
  auto other = start_worker(address, 1);
  EXPECT_TRUE(server.wait());
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
}

// What a worker must not send; each ends the training with the worker's rank.
struct Misdeed {
  const char* name;
  Header header;
  std::size_t bytes;
  const char* says;
};

class Misdeeds : public ::testing::TestWithParam<Misdeed> {};

TEST_P(Misdeeds, EndTheTraining) {
  FakeServer server(fake_setup(1, "wfbp", 1), "127.0.0.1:0", endless());
  const Address address = server.start();
  RawPeer worker = join_as(address, 0);
  ASSERT_TRUE(worker.receive());
  worker.send(GetParam().header, std::vector<std::byte>(GetParam().bytes, std::byte{1}));
  EXPECT_NE(worker.refusal().find(GetParam().says), std::string::npos);
  worker.close();
  const auto ending = server.wait();
  EXPECT_TRUE(says(ending, "worker 0 ("));
  EXPECT_TRUE(says(ending, GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, Misdeeds,
    ::testing::Values(
        Misdeed{"slice", {.type = MessageType::gradient, .slice = 999}, 28, "does not exist like that"},
        Misdeed{"size", {.type = MessageType::gradient, .slice = 0}, 32, "does not exist like that"},
        Misdeed{"step", {.type = MessageType::gradient, .slice = 0, .step = 1}, 28, "at a wrong time"},
        Misdeed{"lane", {.type = MessageType::gradient, .lane = 1}, 28, "of another lane"},
        Misdeed{"join", {.type = MessageType::join}, 4, "nobody asked for"},
        Misdeed{"fingerprint", {.type = MessageType::fingerprint}, 8, "nobody asked for"},
        Misdeed{"report", {.type = MessageType::report, .step = 5}, kReportBytes, "flags"}),
    [](const auto& misdeed) { return misdeed.param.name; });

}  // namespace
}  // namespace gradlane::train
