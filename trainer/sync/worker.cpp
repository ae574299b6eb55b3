// SPDX-License-Identifier: Apache-2.0
#include "sync/worker.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sync/byte_log.hpp"
#include "sync/compute_thread.hpp"
#include "sync/connection.hpp"
#include "sync/introduce.hpp"
#include "sync/poller.hpp"
#include "sync/sender.hpp"

namespace gradlane::train {

namespace {

constexpr std::uint64_t kSignalKey = 1;
constexpr std::uint64_t kComputeKey = 2;
constexpr std::uint64_t kFirstLaneKey = 16;

// How long a worker that lost a connection looks for the server's reason on the others.
constexpr auto kLastWords = std::chrono::seconds(1);

// The network half of a worker.
class Worker final : public Receiver {
 public:
  Worker(const WorkerOptions& options, const TrainingSetup& setup, Task& task, Poller poller)
      : options_(options),
        setup_(setup),
        model_(task.model()),
        plan_(Plan::make(setup, layer_parameters(model_))),
        poller_(std::move(poller)),
        sender_(plan_, MessageType::gradient, setup.slice_bytes),
        compute_(task, setup, plan_, options.rank),
        received_(plan_.slices.size(), 0),
        handed_(model_.layers(), 0),
        missing_(model_.layers(), 0),
        watched_(plan_.lanes, false) {
    connections_.reserve(plan_.lanes);
    for (std::size_t layer = 0; layer < missing_.size(); ++layer) missing_[layer] = slices_of(layer);
  }

  Status join(Patience& patience);
  Result<Ending> run(int signal_fd);
  std::vector<std::string> byte_log() const;

  Result<std::span<std::byte>> place(Connection& connection, const Header& header) override;
  Status taken(Connection& connection, const Header& header, std::span<const std::byte> payload) override;

 private:
  std::uint32_t slices_of(std::size_t layer) const {
    return plan_.first_slice[layer + 1] - plan_.first_slice[layer];
  }
  Status handle(const PollEvent& event);
  Status hand_out();
  Status pump();
  Status slice_taken(std::uint32_t slice);
  Status answer_check();
  Error lost(const std::string& how);

  const WorkerOptions& options_;
  const TrainingSetup& setup_;
  Model& model_;
  Plan plan_;
  Poller poller_;
  std::vector<Connection> connections_;  // by lane
  Sender sender_;
  ComputeThread compute_;

  std::vector<std::uint32_t> received_;  // by slice: how often its parameters came
  std::vector<std::uint32_t> handed_;    // by layer: how many of its gradients the computing thread has given
  std::vector<std::uint32_t> missing_;   // by layer: slices until its parameters are complete again
  std::uint64_t received_slices_ = 0;
  std::vector<ComputeOutput::Gradient> held_;  // until the backward pass is over, where the schedule wants it
  std::vector<bool> watched_;                  // for writability, by lane
  std::vector<std::byte> payload_;             // of the control message being read
  std::uint32_t until_ = 0;
  bool check_asked_ = false;
  bool finished_ = false;
  bool changed_ = false;  // the sender has to be asked
  std::optional<std::string> refused_;
};

Status Worker::join(Patience& patience) {
  for (std::size_t index = 0; index < plan_.lanes; ++index) {
    const auto lane = static_cast<std::uint8_t>(index);
    const SocketOptions options = plan_.socket_options(setup_, lane);
    auto fd = reach(options_.server, options, options_.connect_limit, patience);
    if (!fd) return fd.error();
    const int number = fd->get();
    connections_.emplace_back(std::move(*fd), lane, options.tag);
    sender_.attach(lane, connections_.back());
    connections_.back().send({.type = MessageType::join}, encode_rank(options_.rank));
    if (Status status = connections_.back().flush(); !status) return lost(status.error().message);
    if (Status status = poller_.watch(number, kFirstLaneKey + lane); !status) return status;
  }
  return {};
}

Result<Ending> Worker::run(int signal_fd) {
  if (Status status = poller_.watch(signal_fd, kSignalKey); !status) return status.error();
  if (Status status = compute_.start(); !status) return status.error();
  if (Status status = poller_.watch(compute_.event_fd(), kComputeKey); !status) return status.error();
  while (!finished_) {
    const auto events = poller_.wait(sender_.wake_at());
    if (!events) return events.error();
    for (const PollEvent& event : *events) {
      if (event.key == kSignalKey) {
        const Signal signal = take_signal(signal_fd);
        if (signal.number == 0) continue;
        spdlog::warn("ended by {}", signal.name);
        return Ending{.signal = signal.number};
      }
      if (Status status = handle(event); !status) return status.error();
    }
    if (Status status = pump(); !status) return status.error();
  }
  return Ending{};
}

Status Worker::handle(const PollEvent& event) {
  if (event.key == kComputeKey) return hand_out();
  const std::size_t lane = event.key - kFirstLaneKey;
  if (event.writable) changed_ = true;
  if (!event.readable) return {};
  const auto state = connections_[lane].read(*this);
  if (refused_ || !state) return lost(state ? "" : state.error().message);
  // After the last message of a training the server closes lane by lane.
  if (*state == ReadState::ended && !finished_) return lost("the server closed the connection");
  return {};
}

Status Worker::hand_out() {
  ComputeOutput output = compute_.take();
  if (output.failed) return *output.failed;
  for (const ComputeOutput::Report& report : output.reports)
    connections_[0].send({.type = MessageType::report, .step = report.step}, encode_report(report.report));
  held_.insert(held_.end(), output.gradients.begin(), output.gradients.end());
  changed_ = true;
  if (plan_.schedule.whole_passes && !output.backward_done) return {};
  for (const ComputeOutput::Gradient& gradient : held_) {
    handed_[gradient.layer] = gradient.step + 1;
    const auto bytes = std::as_bytes(model_.gradient(gradient.layer));
    for (std::uint32_t slice = plan_.first_slice[gradient.layer];
         slice < plan_.first_slice[gradient.layer + 1]; ++slice) {
      const Slice& part = plan_.slices[slice];
      sender_.add(slice, gradient.step, bytes.subspan(part.offset * sizeof(float), part.bytes()));
    }
  }
  held_.clear();
  return {};
}

Status Worker::pump() {
  const auto now = Clock::now();
  const auto wake = sender_.wake_at();
  if (!changed_ && !(wake && *wake <= now)) return {};
  changed_ = false;
  if (Status status = sender_.pump(now); !status) return lost(status.error().message);
  for (std::size_t lane = 0; lane < plan_.lanes; ++lane) {
    if (watched_[lane] == sender_.wants_write(lane)) continue;
    watched_[lane] = sender_.wants_write(lane);
    if (Status status = poller_.watch_writable(connections_[lane].fd(), kFirstLaneKey + lane, watched_[lane]);
        !status)
      return status;
  }
  return {};
}

Result<std::span<std::byte>> Worker::place(Connection& connection, const Header& header) {
  if (header.lane != connection.lane() && header.type != MessageType::refuse)
    return make_error("the peer sent " + describe(header.type) + " of another lane");
  switch (header.type) {
    case MessageType::parameters: {
      const std::string what = "the peer sent the parameters of slice " + std::to_string(header.slice) +
                               " after step " + std::to_string(header.step);
      if (header.slice >= plan_.slices.size() || header.bytes != plan_.slices[header.slice].bytes() ||
          header.lane != plan_.lane_of[header.slice])
        return make_error(what + ", which does not exist like that");
      const Slice& slice = plan_.slices[header.slice];
      // Else the memory may be in use by the computing thread.
      if (header.step != received_[header.slice] || header.step != handed_[slice.layer])
        return make_error(what + " at a wrong time");
      return std::as_writable_bytes(model_.parameters(slice.layer).subspan(slice.offset, slice.floats));
    }
    case MessageType::run:
    case MessageType::check:
    case MessageType::finish:
    case MessageType::refuse:
      payload_.resize(header.bytes);
      return std::span<std::byte>(payload_);
    default:
      return make_error("the peer sent " + describe(header.type) + ", which nobody asked for");
  }
}

Status Worker::taken(Connection& /*connection*/, const Header& header, std::span<const std::byte> payload) {
  switch (header.type) {
    case MessageType::parameters:
      return slice_taken(header.slice);
    case MessageType::run:
      if (header.step <= until_) return make_error("the peer sent a run message for steps that are over");
      until_ = header.step;
      compute_.allow(until_);
      return {};
    case MessageType::check:
      check_asked_ = true;
      return answer_check();
    case MessageType::finish:
      finished_ = true;
      return {};
    default:
      refused_ = std::string(reinterpret_cast<const char*>(payload.data()), payload.size());
      return {};
  }
}

Status Worker::slice_taken(std::uint32_t slice) {
  const std::uint32_t layer = plan_.slices[slice].layer;
  const std::uint32_t version = received_[slice]++;
  ++received_slices_;
  if (--missing_[layer] == 0) {
    missing_[layer] = slices_of(layer);
    compute_.layer_complete(layer, version);
  }
  return check_asked_ ? answer_check() : Status{};
}

Status Worker::answer_check() {
  // All parameters have to be there, and then the computing thread leaves them alone until the next run.
  if (received_slices_ != plan_.slices.size() * (std::uint64_t{until_} + 1)) return {};
  check_asked_ = false;
  changed_ = true;
  connections_[0].send({.type = MessageType::fingerprint, .step = until_},
                       encode_fingerprint(fingerprint(model_)));
  return {};
}

Error Worker::lost(const std::string& how) {
  const auto until = Clock::now() + kLastWords;
  std::vector<pollfd> fds;
  fds.reserve(connections_.size());
  for (const Connection& connection : connections_)
    fds.push_back({.fd = connection.fd(), .events = POLLIN, .revents = 0});
  while (!refused_ && Clock::now() < until) {
    const bool open = std::any_of(fds.begin(), fds.end(), [](const pollfd& it) { return it.fd >= 0; });
    if (!open || ::poll(fds.data(), fds.size(), 100) < 0) break;
    for (std::size_t lane = 0; lane < fds.size(); ++lane) {
      if (fds[lane].revents == 0) continue;
      const auto state = connections_[lane].read(*this);
      if (!state || *state == ReadState::ended) fds[lane].fd = -1;
    }
  }
  if (refused_) return make_error("the server at " + options_.server.text() + " says: " + *refused_);
  return make_error("the server at " + options_.server.text() + " was lost before the end: " + how +
                    "; look at its own messages, then start server and workers again");
}

std::vector<std::string> Worker::byte_log() const {
  std::vector<std::string> lines;
  lines.reserve(connections_.size());
  for (const Connection& connection : connections_)
    lines.push_back(byte_log_line(connection, "worker", options_.rank));
  return lines;
}

Result<Ending> train(const WorkerOptions& options, const MakeTask& make_task, int signal_fd,
                     Patience& patience) {
  const auto setup = ask_setup(options.server, options.rank, options.connect_limit, patience);
  if (!setup) return setup.error();
  auto task = make_task(*setup);
  if (!task) return task.error();
  const auto counts = layer_parameters((*task)->model());
  const auto parameters = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (parameters != setup->parameters) {
    return make_error("this worker's model has " + std::to_string(parameters) +
                      " parameters and the server's " + std::to_string(setup->parameters) +
                      ": use the same data on all hosts, and the same gradlane");
  }
  auto poller = Poller::create();
  if (!poller) return poller.error();
  Worker worker(options, *setup, **task, std::move(*poller));
  if (Status status = worker.join(patience); !status) return status.error();
  auto ending = worker.run(signal_fd);
  if (options.byte_log.empty()) return ending;
  const Status logged = write_lines(options.byte_log, worker.byte_log());
  if (ending && !logged) return logged.error();
  return ending;
}

}  // namespace

Result<Ending> run_worker(const WorkerOptions& options, const MakeTask& make_task, int signal_fd) {
  if (!options.byte_log.empty()) {
    if (Status status = write_lines(options.byte_log, {}); !status) return status.error();
  }
  Patience patience(signal_fd);
  auto ending = train(options, make_task, signal_fd, patience);
  if (!ending && patience.signal().number != 0) {
    spdlog::warn("ended by {}", patience.signal().name);
    return Ending{.signal = patience.signal().number};
  }
  return ending;
}

}  // namespace gradlane::train
