// SPDX-License-Identifier: Apache-2.0
// Whole trainings over loopback.
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "fake.hpp"

namespace gradlane::train {
namespace {

TrainingResult local_result(const TrainingSetup& setup, Recorder& recorder) {
  FakeTask task;
  const FakeSignals signals;
  const auto ending = run_local(
      setup, task, fake_update, []() -> Result<Evaluation> { return Evaluation{}; }, fake_commands(7),
      recorder, signals.fd());
  EXPECT_TRUE(ending) << ending.error().message;
  return recorder.result;
}

class Training : public ::testing::TestWithParam<std::tuple<const char*, int, int>> {};

TEST_P(Training, HasTheSameBitsAsWithoutANetwork) {
  const auto [schedule, lanes, workers] = GetParam();
  const TrainingSetup setup =
      fake_setup(static_cast<std::uint32_t>(workers), schedule, static_cast<std::uint32_t>(lanes));
  Recorder reference;
  const TrainingResult expected = local_result(setup, reference);

  FakeServer server(setup);
  const Address address = server.start();
  std::vector<std::future<Result<Ending>>> endings;
  for (std::uint32_t rank = 0; rank < setup.workers; ++rank) endings.push_back(start_worker(address, rank));
  const auto ending = server.wait();
  ASSERT_TRUE(ending) << ending.error().message;
  for (auto& worker : endings) {
    const auto worker_ending = worker.get();
    EXPECT_TRUE(worker_ending) << worker_ending.error().message;
  }
  EXPECT_EQ(server.recorder.losses, reference.losses);
  EXPECT_EQ(server.recorder.losses.size(), 9U);
  EXPECT_EQ(server.recorder.result.fingerprint, expected.fingerprint);
  EXPECT_EQ(server.recorder.result.steps, 9U);
  ASSERT_EQ(server.recorder.checks.size(), 1U);
  EXPECT_TRUE(server.recorder.checks[0].agree);
  // The command, and before steps 3 and 6.
  EXPECT_EQ(server.recorder.result.checks, 3U);
  EXPECT_EQ(server.recorder.steps, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

INSTANTIATE_TEST_SUITE_P(All, Training,
                         ::testing::Combine(::testing::Values("serial", "wfbp", "pwfbp"),
                                            ::testing::Values(1, 4), ::testing::Values(1, 3)));

TEST(TrainingOnLoopback, CountsEveryByteInTheLogs) {
  const TrainingSetup setup = fake_setup(2, "pwfbp", 4);
  const std::string folder = ::testing::TempDir();
  FakeServer server(setup);
  server.options().byte_log = folder + "server.log";
  const Address address = server.start();
  auto one = start_worker(address, 0, folder + "worker0.log");
  auto other = start_worker(address, 1, folder + "worker1.log");
  ASSERT_TRUE(server.wait());
  ASSERT_TRUE(one.get());
  ASSERT_TRUE(other.get());

  std::size_t bytes = 0;
  for (std::size_t count : layer_parameters(FakeModel())) bytes += count * sizeof(float);
  for (const std::string name : {"server", "worker0", "worker1"}) {
    std::ifstream file(folder + name + ".log");
    std::size_t payload = 0;
    std::map<int, std::size_t> lanes;
    for (std::string line; std::getline(file, line);) {
      const auto json = nlohmann::json::parse(line);
      payload += json["slice_bytes"].get<std::size_t>() - json["slice_header_bytes"].get<std::size_t>();
      ++lanes[json["lane"].get<int>()];
      EXPECT_EQ(json["local"], "127.0.0.1");
      EXPECT_EQ(json[name == "server" ? "local_port" : "remote_port"], address.port());
    }
    // Nine steps; the server also sent the first parameters, and all to two workers.
    EXPECT_EQ(payload, name == "server" ? bytes * 10 * 2 : bytes * 9) << name;
    EXPECT_EQ(lanes.size(), 4U) << name;
  }
}

TEST(TrainingOnLoopback, ReportsAFullDisk) {
  FakeServer server(fake_setup(1, "wfbp", 1));
  server.options().byte_log = "/dev/full";
  const Address address = server.start();
  auto worker = start_worker(address, 0, "/dev/full");
  const auto ending = server.wait();
  const auto worker_ending = worker.get();
  ASSERT_FALSE(ending);
  ASSERT_FALSE(worker_ending);
  EXPECT_NE(ending.error().message.find("/dev/full"), std::string::npos);
  EXPECT_NE(worker_ending.error().message.find("/dev/full"), std::string::npos);
}

// SO_PRIORITY of all sockets of this process that touch this port: by side, how many have which.
std::map<std::pair<bool, int>, int> tags_at_port(std::uint16_t port) {
  std::map<std::pair<bool, int>, int> tags;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  while (const dirent* entry = ::readdir(folder.get())) {
    const int fd = std::atoi(entry->d_name);
    const auto local = local_address(fd);
    const auto remote = remote_address(fd);
    if (!local || !remote) continue;
    int tag = -1;
    socklen_t length = sizeof tag;
    if (::getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &tag, &length) != 0) continue;
    if (local->port() == port) ++tags[{true, tag}];
    if (remote->port() == port) ++tags[{false, tag}];
  }
  return tags;
}

struct TagCase {
  const char* listen;
  std::uint32_t lanes;
  std::array<std::uint8_t, GL_LANES> tags;
  std::map<std::pair<bool, int>, int> expected;  // (server's side, tag): sockets of two workers
};

class Tags : public ::testing::TestWithParam<TagCase> {};

TEST_P(Tags, AreOnTheSocketsOfBothSides) {
  TrainingSetup setup = fake_setup(2, "pwfbp", GetParam().lanes);
  setup.tags = GetParam().tags;
  FakeServer server(setup, GetParam().listen);
  std::map<std::pair<bool, int>, int> tags;
  std::promise<std::uint16_t> port;
  server.on_evaluate([&, listening = port.get_future().share()] { tags = tags_at_port(listening.get()); });
  const Address address = server.start();
  port.set_value(address.port());
  auto one = start_worker(address, 0);
  auto other = start_worker(address, 1);
  const auto ending = server.wait();
  ASSERT_TRUE(ending) << ending.error().message;
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  EXPECT_EQ(tags, GetParam().expected);
}

const std::map<std::pair<bool, int>, int> kAllTagged = {{{true, 6}, 2},  {{true, 4}, 2},  {{true, 2}, 2},
                                                        {{true, 1}, 2},  {{false, 6}, 2}, {{false, 4}, 2},
                                                        {{false, 2}, 2}, {{false, 1}, 2}};
const std::map<std::pair<bool, int>, int> kTwoTagged = {{{true, 6}, 2},  {{true, 4}, 2},  {{true, 0}, 4},
                                                        {{false, 6}, 2}, {{false, 4}, 2}, {{false, 0}, 4}};
const std::map<std::pair<bool, int>, int> kUntagged = {{{true, 0}, 2}, {{false, 0}, 2}};

INSTANTIATE_TEST_SUITE_P(All, Tags,
                         ::testing::Values(TagCase{"127.0.0.1:0", 4, {6, 4, 2, 1}, kAllTagged},
                                           TagCase{"[::1]:0", 4, {6, 4, 2, 1}, kAllTagged},
                                           TagCase{"127.0.0.1:0", 4, {6, 4, 0, 0}, kTwoTagged},
                                           TagCase{"127.0.0.1:0", 1, {6, 4, 2, 1}, kUntagged}));

TEST(TrainingOnLoopback, IsSteeredByCommands) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  FakeServer server(fake_setup(2, "pwfbp", 4), "127.0.0.1:0", {});
  server.options().command_fd = read_end.get();
  const Address address = server.start();
  auto one = start_worker(address, 0);
  auto other = start_worker(address, 1);
  const std::string text = "check\nrun 3\nno such command\ncheck\nrun 2\n";
  ASSERT_EQ(::write(write_end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  write_end.reset();  // the end of the commands is the end of the training
  ASSERT_TRUE(server.wait());
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  ASSERT_EQ(server.recorder.blocks.size(), 2U);
  EXPECT_EQ(server.recorder.blocks[1].first_step, 3U);
  EXPECT_EQ(server.recorder.blocks[1].steps, 2U);
  EXPECT_GT(server.recorder.blocks[1].gradient_bytes, 0U);
  // No block begins with what another one left over.
  EXPECT_EQ(server.recorder.blocks[0].gradient_bytes * 2, server.recorder.blocks[1].gradient_bytes * 3);
  EXPECT_EQ(server.recorder.blocks[0].parameter_bytes, server.recorder.blocks[0].gradient_bytes);
  ASSERT_EQ(server.recorder.checks.size(), 2U);
  EXPECT_NE(server.recorder.checks[0].fingerprint, server.recorder.checks[1].fingerprint);
}

}  // namespace
}  // namespace gradlane::train
