// SPDX-License-Identifier: Apache-2.0
// The parts of a training, each on its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "fake.hpp"
#include "sync/pacer.hpp"
#include "sync/sender.hpp"

namespace gradlane::train {
namespace {

std::array<std::byte, kHeaderBytes> bytes_of(std::mt19937& random) {
  std::array<std::byte, kHeaderBytes> bytes{};
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Wire, HeadersComeBackAsTheyWere) {
  const std::vector<Header> headers = {
      {.type = MessageType::ask, .bytes = 4},
      {.type = MessageType::setup, .bytes = 900},
      {.type = MessageType::run, .step = 77},
      {.type = MessageType::gradient, .lane = 3, .slice = 12, .step = 5, .bytes = 16384},
      {.type = MessageType::parameters, .lane = 1, .slice = 1, .step = UINT32_MAX, .bytes = 4},
      {.type = MessageType::report, .step = 9, .bytes = kReportBytes},
      {.type = MessageType::finish}};
  for (const Header& header : headers) {
    const auto decoded = decode_header(encode_header(header));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->type, header.type);
    EXPECT_EQ(decoded->lane, header.lane);
    EXPECT_EQ(decoded->slice, header.slice);
    EXPECT_EQ(decoded->step, header.step);
    EXPECT_EQ(decoded->bytes, header.bytes);
  }
}

TEST(Wire, RefusesWhatCannotBe) {
  const std::vector<Header> headers = {{.type = static_cast<MessageType>(0)},
                                       {.type = static_cast<MessageType>(12)},
                                       {.type = MessageType::ask, .bytes = 5},
                                       {.type = MessageType::ask, .slice = 1, .bytes = 4},
                                       {.type = MessageType::ask, .step = 1, .bytes = 4},
                                       {.type = MessageType::join, .lane = 4, .bytes = 4},
                                       {.type = MessageType::gradient, .bytes = 0},
                                       {.type = MessageType::gradient, .bytes = 6},
                                       {.type = MessageType::gradient, .bytes = kMaxSliceBytes + 4},
                                       {.type = MessageType::refuse, .bytes = 0},
                                       {.type = MessageType::setup, .bytes = 1 << 20},
                                       {.type = MessageType::finish, .bytes = 1}};
  for (const Header& header : headers)
    EXPECT_FALSE(decode_header(encode_header(header)))
        << static_cast<int>(header.type) << " " << header.bytes;
  auto version = encode_header({.type = MessageType::finish});
  version[4] ^= std::byte{1};
  EXPECT_FALSE(decode_header(version));
  std::mt19937 random(1);
  for (int round = 0; round < 10000; ++round) EXPECT_FALSE(decode_header(bytes_of(random)));
}

TEST(Wire, ReportsComeBackAsTheyWere) {
  const StepReport report{.loss_sum = 0.1,
                          .correct = 3,
                          .samples = 16,
                          .iteration_ns = 12345678901,
                          .arithmetic_ns = 777,
                          .fingerprint = 0xfedcba9876543210,
                          .has_fingerprint = true,
                          .overran = true};
  const auto bytes = encode_report(report);
  const auto decoded = decode_report(std::span(bytes).first<kReportBytes>());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->loss_sum, report.loss_sum);
  EXPECT_EQ(decoded->correct, report.correct);
  EXPECT_EQ(decoded->samples, report.samples);
  EXPECT_EQ(decoded->iteration_ns, report.iteration_ns);
  EXPECT_EQ(decoded->arithmetic_ns, report.arithmetic_ns);
  EXPECT_EQ(decoded->fingerprint, report.fingerprint);
  EXPECT_TRUE(decoded->has_fingerprint && decoded->overran);
  for (const StepReport& wrong : {StepReport{.loss_sum = NAN, .samples = 1}, StepReport{.samples = 0},
                                  StepReport{.correct = 2, .samples = 1}}) {
    const auto wrong_bytes = encode_report(wrong);
    EXPECT_FALSE(decode_report(std::span(wrong_bytes).first<kReportBytes>()));
  }
}

TEST(SetupMessage, ComesBackAsItWas) {
  TrainingSetup setup = fake_setup(3, "pwfbp", 4);
  setup.tags = {6, 4, 0, 0};
  setup.congestion = "cubic";
  setup.spec = "dense 10";
  setup.seed = UINT64_MAX;
  setup.learning_rate = 0.1;
  setup.device_ms = 12.5;
  setup.parameters = 64586;
  const std::string text = setup_to_json(setup);
  const auto decoded = setup_from_json(text);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(setup_to_json(*decoded), text);
  EXPECT_EQ(decoded->seed, UINT64_MAX);
  EXPECT_EQ(decoded->learning_rate, 0.1);
}

TEST(SetupMessage, RefusesWhatItDoesNotKnow) {
  const std::string good = setup_to_json(fake_setup(2, "wfbp", 1));
  const auto replaced = [&good](const std::string& what, const std::string& by) {
    std::string text = good;
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
  };
  ASSERT_TRUE(setup_from_json(good));
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), replaced("\"lanes\":1", "\"lanes\":2"),
        replaced("\"lanes\":1", "\"lanes\":-1"), replaced("\"lanes\":1", "\"lanes\":\"1\""),
        replaced("\"lanes\":1", "\"lanes\":4294967297"), replaced("\"workers\":2", "\"workers\":0"),
        replaced("\"wfbp\"", "\"fifo\""), replaced("[6,4,2,1]", "[6,4,2]"),
        replaced("[6,4,2,1]", "[7,4,2,1]"), replaced("\"seed\"", "\"sead\""),
        replaced("\"workers\":2", "\"workers\":2,\"extra\":1"), replaced("\"batch\":2", "\"batch\":3"),
        replaced("\"slice_bytes\":2048", "\"slice_bytes\":3")})
    EXPECT_FALSE(setup_from_json(text)) << text;
}

TEST(Address, IsWrittenWithItsPort) {
  EXPECT_EQ(parse_address("127.0.0.1:7000")->text(), "127.0.0.1:7000");
  EXPECT_EQ(parse_address("[::1]:7000")->text(), "[::1]:7000");
  EXPECT_EQ(parse_address("[::ffff:127.0.0.1]:1")->host(), "127.0.0.1");
  for (const char* wrong :
       {"", "127.0.0.1", "127.0.0.1:", ":7000", "::1:7000", "127.0.0.1:70000", "127.0.0.1:x"})
    EXPECT_FALSE(parse_address(wrong)) << wrong;
}

TEST(Socket, NamesTheCongestionControlsThereAre) {
  const auto fd =
      make_socket(*parse_address("127.0.0.1:1"), {.tag = 0, .congestion = "nosuch", .low_water = 0});
  ASSERT_FALSE(fd);
  EXPECT_NE(fd.error().message.find("available are"), std::string::npos);
  EXPECT_NE(fd.error().message.find("cubic"), std::string::npos) << fd.error().message;
}

TEST(Commands, AreReadStrictly) {
  EXPECT_EQ(parse_command("run 12")->steps, 12U);
  EXPECT_EQ(parse_command("finish")->kind, Command::Kind::finish);
  for (const char* wrong :
       {"", "run", "run ", "run 0", "run -1", "run 1 ", "run 99999999999", "Finish", "check now"})
    EXPECT_FALSE(parse_command(wrong)) << wrong;
}

// Whatever the order of arrival, the sum is taken in rank order.
TEST(ParameterStore, HasTheSameBitsInAnyOrder) {
  const auto slices = cut_slices(layer_parameters(FakeModel()), 500);
  const std::size_t ranks = 5;
  std::vector<std::vector<float>> gradients(ranks);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> values(-1e3F, 1e3F);
  for (auto& gradient : gradients) {
    gradient.resize(slices.size());
    for (float& value : gradient) value = values(random);
  }
  std::optional<std::uint64_t> expected;
  for (int round = 0; round < 20; ++round) {
    FakeModel model;
    ParameterStore store(model, slices, ranks, fake_update);
    std::vector<std::pair<std::size_t, std::uint32_t>> arrivals;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::uint32_t slice = 0; slice < slices.size(); ++slice) arrivals.emplace_back(rank, slice);
    }
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    for (const auto& [rank, slice] : arrivals) {
      ASSERT_FALSE(store.has(rank, slice));
      std::ranges::fill(store.gradient(rank, slice), gradients[rank][slice]);
      store.arrived(rank, slice);
    }
    for (std::uint32_t slice = 0; slice < slices.size(); ++slice) ASSERT_EQ(store.version(slice), 1U);
    if (!expected) expected = fingerprint(model);
    ASSERT_EQ(fingerprint(model), *expected);
  }
}

TEST(Fingerprint, SeesEveryBit) {
  FakeModel model;
  const std::uint64_t before = fingerprint(model);
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    for (float& value : model.parameters(layer)) {
      const float kept = std::exchange(value, std::nextafter(value, 10.0F));
      ASSERT_NE(fingerprint(model), before);
      value = kept;
    }
  }
  EXPECT_EQ(fingerprint(model), before);
}

TEST(Statistics, PutRanksTogether) {
  BlockCollector block(3, 10, 2);
  const auto report = [](double loss, std::uint64_t ms) {
    return StepReport{.loss_sum = loss, .correct = 1, .samples = 2, .iteration_ns = ms * 1000000};
  };
  block.add(0, report(1e16, 5));
  block.add(0, report(1, 5));
  block.add(1, report(1, 9));
  EXPECT_EQ(block.next_step(0), 12U);
  EXPECT_EQ(block.next_step(2), 10U);
  EXPECT_EQ(block.complete_steps(), 0U);
  block.add(2, report(-1e16, 7));
  EXPECT_EQ(block.complete_steps(), 1U);
  block.add(1, report(2, 1));
  block.add(2, report(3, 2));
  ASSERT_TRUE(block.complete());
  const BlockResult result = block.result();
  EXPECT_EQ(result.iteration_ms, (std::vector<double>{7, 2}));
  EXPECT_EQ(result.iteration_ms_max, (std::vector<double>{9, 5}));
  // In rank order 1e16 swallows the 1.
  EXPECT_EQ(result.loss, (std::vector<double>{0, 1}));
  EXPECT_EQ(result.accuracy, (std::vector<double>{0.5, 0.5}));
}

TEST(Pacer, TakesAsLongAsTheDevice) {
  const std::vector<double> work = {1, 0, 3};
  Pacer pacer(30, work);
  const auto begin = Clock::now();
  pacer.wait_until(begin);
  for (std::size_t layer = 0; layer < work.size(); ++layer) pacer.forward_done(layer);
  // A third, to the rounding of three durations.
  EXPECT_GE(Clock::now() - begin, std::chrono::microseconds(9999));
  for (std::size_t layer = work.size(); layer-- > 0;) pacer.backward_done(layer);
  EXPECT_GE(Clock::now() - begin, std::chrono::microseconds(29999));
}

TEST(Pacer, NoticesArithmeticThatIsTooSlow) {
  const std::vector<double> work = {1};
  Pacer pacer(2, work);
  pacer.wait_until(Clock::now());
  ::usleep(5000);
  pacer.forward_done(0);
  pacer.backward_done(0);
  EXPECT_TRUE(pacer.end_iteration());
}

// A connection over loopback whose other end takes little at a time.
struct Loop {
  Fd sender;
  Fd receiver;
};

Loop make_loop(const SocketOptions& options) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  const int small = 4096;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  const Address any = *parse_address("127.0.0.1:0");
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any.storage), any.length) != 0) std::abort();
  if (::listen(listener.get(), 4) != 0) std::abort();
  const Address address = *local_address(listener.get());
  auto sender = make_socket(address, options);
  if (!sender) std::abort();
  ::connect(sender->get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  return {std::move(*sender), Fd(::accept(listener.get(), nullptr, nullptr))};
}

TEST(Sender, KeepsLittleInTheKernelSoThatUrgentSlicesOvertake) {
  TrainingSetup setup = fake_setup(1, "pwfbp", 1);
  setup.slice_bytes = 16384;
  const std::vector<std::size_t> layers = {4096, 200000};
  const Plan plan = Plan::make(setup, layers);
  Loop loop = make_loop(plan.socket_options(setup, 0));
  Connection connection(std::move(loop.sender), 0, 0);
  Sender sender(plan, MessageType::gradient, setup.slice_bytes);
  sender.attach(0, connection);
  const std::vector<float> data(4096, 1.0F);
  for (std::uint32_t slice = 1; slice < plan.slices.size(); ++slice)
    sender.add(slice, 0, std::as_bytes(std::span(data)).first(plan.slices[slice].bytes()));
  ASSERT_TRUE(sender.pump(Clock::now()));
  EXPECT_TRUE(sender.wants_write(0));
  EXPECT_LE(send_backlog(connection.fd()).unsent, setup.slice_bytes + low_water(plan, setup.slice_bytes));
  sender.add(0, 0, std::as_bytes(std::span(data)).first(plan.slices[0].bytes()));

  std::vector<std::uint32_t> order;
  std::vector<std::byte> received;
  while (order.size() < plan.slices.size()) {
    ASSERT_TRUE(sender.pump(Clock::now()));
    std::array<std::byte, 8192> buffer{};
    const ssize_t count = ::recv(loop.receiver.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) received.insert(received.end(), buffer.begin(), buffer.begin() + count);
    while (received.size() >= kHeaderBytes) {
      const auto header = decode_header(std::span(received).first<kHeaderBytes>());
      ASSERT_TRUE(header) << header.error().message;
      if (received.size() < kHeaderBytes + header->bytes) break;
      order.push_back(header->slice);
      received.erase(received.begin(),
                     received.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + header->bytes));
    }
  }
  const auto urgent = std::ranges::find(order, 0U) - order.begin();
  EXPECT_LE(urgent, 3) << "slices went before the urgent one that was added after the first pump";
  order.erase(order.begin() + urgent);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_TRUE(sender.idle());
}

}  // namespace
}  // namespace gradlane::train
