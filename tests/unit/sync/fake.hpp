// SPDX-License-Identifier: Apache-2.0
// A training without pictures: a model whose numbers depend on every parameter it was given, and all that a
// server and its workers need around it.
#pragma once

#include <sys/signalfd.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/fd.hpp"
#include "sync/local.hpp"
#include "sync/server.hpp"
#include "sync/worker.hpp"

namespace gradlane::train {

class FakeModel final : public Model {
 public:
  explicit FakeModel(std::vector<std::size_t> layers = {7, 0, 300, 9000, 33}) {
    for (const std::size_t count : layers) {
      infos_.push_back({.name = "layer" + std::to_string(infos_.size()),
                        .shape = "fake",
                        .parameters = count,
                        .multiply_adds = static_cast<double>(count)});
      std::vector<float> values(count);
      for (std::size_t index = 0; index < count; ++index)
        values[index] = std::sin(static_cast<float>(index + infos_.size()));
      parameters_.push_back(values);
      gradients_.push_back(std::vector<float>(count, 0));
    }
  }

  void set_input(std::uint32_t step, std::uint32_t rank) {
    input_ = 0.25F + static_cast<float>((step * 31 + rank * 7) % 17);
  }

  std::size_t layers() const override { return infos_.size(); }
  const LayerInfo& layer(std::size_t index) const override { return infos_[index]; }
  void set_batch(std::span<const float> /*images*/, std::span<const std::uint8_t> /*labels*/) override {}
  void forward(std::size_t index) override {
    if (index == 0) value_ = input_;
    for (const float parameter : parameters_[index]) value_ = value_ * 0.75F + parameter;
  }
  double loss_sum() const override { return std::abs(static_cast<double>(value_)); }
  std::size_t correct() const override { return 1; }
  void backward(std::size_t index) override {
    for (std::size_t at = 0; at < parameters_[index].size(); ++at) {
      gradients_[index][at] =
          0.01F * parameters_[index][at] + 0.001F * value_ * std::cos(input_ * static_cast<float>(at + 1));
    }
  }
  std::span<const float> gradient(std::size_t index) const override { return gradients_[index]; }
  std::span<float> parameters(std::size_t index) override { return parameters_[index]; }

 private:
  std::vector<LayerInfo> infos_;
  std::vector<std::vector<float>> parameters_;
  std::vector<std::vector<float>> gradients_;
  float input_ = 0;
  float value_ = 0;
};

class FakeTask final : public Task {
 public:
  Model& model() override { return model_; }
  Status prepare(std::uint32_t step, std::uint32_t rank) override {
    model_.set_input(step, rank);
    return {};
  }
  Status status() override { return {}; }

 private:
  FakeModel model_;
};

inline Result<std::unique_ptr<Task>> make_fake_task(const TrainingSetup& /*setup*/) {
  return std::unique_ptr<Task>(std::make_unique<FakeTask>());
}

inline void fake_update(std::span<float> parameters, std::span<float> velocity,
                        std::span<const float> gradient_sum) {
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    velocity[index] = 0.5F * velocity[index] + gradient_sum[index];
    parameters[index] -= 0.1F * velocity[index];
  }
}

// Keeps what it is told.
class Recorder final : public Observer {
 public:
  Status listening(const Address& address) override {
    address_.set_value(address);
    return {};
  }
  Status ready(const TrainingSetup& /*setup*/, const Model& /*model*/) override {
    ready_.set_value();
    return {};
  }
  Status progressed(std::uint32_t step, double /*loss*/) override {
    steps.push_back(step);
    return {};
  }
  Status block(const BlockResult& block) override {
    losses.insert(losses.end(), block.loss.begin(), block.loss.end());
    blocks.push_back(block);
    return {};
  }
  Status evaluated(std::uint32_t /*step*/, const Evaluation& /*evaluation*/) override { return {}; }
  Status checked(const CheckResult& check) override {
    checks.push_back(check);
    return {};
  }
  Status finished(const TrainingResult& training) override {
    result = training;
    return {};
  }
  std::future<Address> address() { return address_.get_future(); }
  void wait_until_ready() { ready_.get_future().wait(); }

  std::vector<std::uint32_t> steps;
  std::vector<double> losses;
  std::vector<BlockResult> blocks;
  std::vector<CheckResult> checks;
  TrainingResult result;

 private:
  std::promise<Address> address_;
  std::promise<void> ready_;
};

// Stands in for the descriptor that signals come from.
class FakeSignals {
 public:
  FakeSignals() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) std::abort();
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  int fd() const { return read_.get(); }
  void raise(int number) {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(number);
    if (::write(write_.get(), &info, sizeof info) != sizeof info) std::abort();
  }

 private:
  Fd read_;
  Fd write_;
};

inline TrainingSetup fake_setup(std::uint32_t workers, const std::string& schedule, std::uint32_t lanes) {
  TrainingSetup setup;
  setup.workers = workers;
  setup.batch = workers;
  setup.schedule = schedule;
  setup.lanes = lanes;
  setup.slice_bytes = 2048;
  setup.check_every = 3;
  return setup;
}

inline std::deque<Command> fake_commands(std::uint32_t steps) {
  return {{.kind = Command::Kind::run, .steps = steps},
          {.kind = Command::Kind::check},
          {.kind = Command::Kind::evaluate},
          {.kind = Command::Kind::run, .steps = 2},
          {.kind = Command::Kind::finish}};
}

// A server in a thread of its own.
class FakeServer {
 public:
  explicit FakeServer(const TrainingSetup& setup, const std::string& listen = "127.0.0.1:0",
                      std::deque<Command> commands = fake_commands(7))
      : options_{.listen = *parse_address(listen),
                 .setup = setup,
                 .commands = std::move(commands),
                 .byte_log = "",
                 .wait = std::chrono::seconds(10)} {}
  ServerOptions& options() { return options_; }
  void on_evaluate(std::function<void()> action) { on_evaluate_ = std::move(action); }

  // Returns the address it listens on.
  Address start() {
    auto address = recorder.address();
    ending_ = std::async(std::launch::async, [this]() -> Result<Ending> {
      return run_server(options_,
                        {.model = model_,
                         .update = fake_update,
                         .evaluate = [this]() -> Result<Evaluation> {
                           if (on_evaluate_) on_evaluate_();
                           return Evaluation{};
                         }},
                        recorder, signals.fd());
    });
    return address.get();
  }
  Result<Ending> wait() { return ending_.get(); }

  Recorder recorder;
  FakeSignals signals;

 private:
  ServerOptions options_;
  FakeModel model_;
  std::function<void()> on_evaluate_;
  std::future<Result<Ending>> ending_;
};

// A worker in a thread of its own.
inline std::future<Result<Ending>> start_worker(const Address& server, std::uint32_t rank,
                                                const std::string& byte_log = "") {
  return std::async(std::launch::async, [server, rank, byte_log]() -> Result<Ending> {
    const FakeSignals signals;
    return run_worker({.server = server, .rank = rank, .byte_log = byte_log}, make_fake_task, signals.fd());
  });
}

// Reads and writes messages by hand.
class RawPeer {
 public:
  explicit RawPeer(const Address& server)
      : fd_(::socket(server.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&server.storage), server.length) != 0)
      std::abort();
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }
  void send(std::span<const std::byte> bytes) {
    if (::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  void send(Header header, const std::vector<std::byte>& payload) {
    header.bytes = static_cast<std::uint32_t>(payload.size());
    send(encode_header(header));
    if (!payload.empty()) send(payload);
  }
  // The next message; none if the peer closed the connection.
  std::optional<std::pair<Header, std::string>> receive() {
    std::array<std::byte, kHeaderBytes> bytes{};
    if (::recv(fd_.get(), bytes.data(), bytes.size(), MSG_WAITALL) != static_cast<ssize_t>(bytes.size()))
      return std::nullopt;
    const auto header = decode_header(bytes);
    if (!header) return std::nullopt;
    std::string payload(header->bytes, '\0');
    if (header->bytes != 0 && ::recv(fd_.get(), payload.data(), payload.size(), MSG_WAITALL) !=
                                  static_cast<ssize_t>(payload.size()))
      return std::nullopt;
    return std::pair(*header, payload);
  }
  // The sentence that it is refused with; empty if it is not.
  std::string refusal() {
    while (const auto message = receive()) {
      if (message->first.type == MessageType::refuse) return message->second;
    }
    return "";
  }

 private:
  Fd fd_;
};

}  // namespace gradlane::train
