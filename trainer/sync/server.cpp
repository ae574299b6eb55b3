// SPDX-License-Identifier: Apache-2.0
#include "sync/server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sync/byte_log.hpp"
#include "sync/server_loop.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

namespace {

constexpr auto kNoticeEvery = std::chrono::seconds(5);
constexpr auto kSilence = std::chrono::seconds(10);
constexpr auto kPartFinished = std::chrono::seconds(5);
constexpr auto kPartFailed = std::chrono::seconds(1);

}  // namespace

Server::Server(const ServerOptions& options, ServerTask task, Observer& observer, Poller poller)
    : options_(options),
      setup_(options.setup),
      task_(std::move(task)),
      observer_(observer),
      poller_(std::move(poller)),
      guests_(poller_, kFirstGuestKey),
      plan_(Plan::make(setup_, layer_parameters(task_.model))),
      store_(task_.model, plan_.slices, setup_.workers, task_.update),
      commands_(options.commands) {
  for (const Slice& slice : plan_.slices) setup_.parameters += slice.floats;
  peers_.reserve(setup_.workers);
  for (std::uint32_t rank = 0; rank < setup_.workers; ++rank) peers_.emplace_back(plan_, setup_.slice_bytes);
}

Result<Ending> Server::run(int signal_fd) {
  if (Status status = start(signal_fd); !status) return status.error();
  Result<Ending> ending = loop(signal_fd);
  if (!ending) tell_all("the server ended: " + ending.error().message);
  if (ending && ending->signal != 0) tell_all("the server was ended by a signal");
  if (Status left = leave(ending && ending->signal == 0); ending && !left) return left.error();
  return ending;
}

Status Server::start(int signal_fd) {
  // What no worker could be given is better known before they come.
  if (auto trial = make_socket(options_.listen, plan_.socket_options(setup_, 0)); !trial)
    return trial.error();
  if (!options_.byte_log.empty()) {
    if (Status status = write_lines(options_.byte_log, {}); !status) return status;
  }
  auto listener = listen_on(options_.listen);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  if (Status status = poller_.watch(listener_.get(), kListenerKey); !status) return status;
  if (Status status = poller_.watch(signal_fd, kSignalKey); !status) return status;
  if (options_.command_fd >= 0) reader_.emplace(options_.command_fd);
  gather_until_ = Clock::now() + options_.wait;
  notice_at_ = Clock::now() + kNoticeEvery;
  auto address = local_address(listener_.get());
  if (!address) return address.error();
  return observer_.listening(*address);
}

Result<Ending> Server::loop(int signal_fd) {
  while (phase_ != Phase::finished) {
    const auto now = Clock::now();
    if (Status status = pump(now); !status) return status.error();
    if (Status status = watch_time(now); !status) return status.error();
    const auto events = poller_.wait(next_time());
    if (!events) return events.error();
    // The urgent lanes first.
    std::vector<std::pair<int, PollEvent>> ordered;
    for (const PollEvent& event : *events) {
      const Guest* guest = guests_.find(event.key);
      ordered.emplace_back(guest == nullptr ? -1 : guest->connection.lane(), event);
    }
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    for (const auto& [lane, event] : ordered) {
      if (event.key == kSignalKey) {
        const Signal signal = take_signal(signal_fd);
        if (signal.number == 0) continue;
        spdlog::warn("ended by {}", signal.name);
        return Ending{.signal = signal.number};
      }
      if (Status status = handle(event); !status) return status.error();
    }
    if (Status status = next_commands(); !status) return status.error();
  }
  return Ending{};
}

Status Server::leave(bool well) {
  poller_.forget(listener_.get());
  if (reader_ && !reader_->ended()) poller_.forget(reader_->fd());
  listener_.reset();
  std::vector<std::string> lines;
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) {
    for (const Guest* guest : peers_[rank].lanes) {
      if (guest != nullptr) lines.push_back(byte_log_line(guest->connection, "server", rank));
    }
  }
  guests_.part(Clock::now() + (well ? Clock::duration(kPartFinished) : Clock::duration(kPartFailed)));
  if (options_.byte_log.empty()) return {};
  return write_lines(options_.byte_log, lines);
}

Status Server::handle(const PollEvent& event) {
  if (event.key == kListenerKey) return guests_.accept_from(listener_.get());
  if (event.key == kCommandKey) {
    reader_->read(commands_);
    if (reader_->ended()) poller_.forget(reader_->fd());
    return {};
  }
  if (Guest* guest = guests_.find(event.key); guest != nullptr && event.writable && guest->rank)
    peers_[*guest->rank].changed = true;
  if (Guest* guest = guests_.find(event.key); guest != nullptr && event.readable) {
    if (guest->leaving)
      guests_.read_off(*guest);
    else
      return read_from(*guest);
  }
  return {};
}

Status Server::read_from(Guest& guest) {
  GuestReceiver receiver(*this, guest);
  const auto state = guest.connection.read(receiver);
  if (guest.leaving || (state && *state == ReadState::open)) return {};
  if (guest.rank) return lost(guest, state ? "closed its connection" : state.error().message);
  // Somebody else's program must not end the training.
  if (!state) {
    spdlog::warn("{} was disconnected: {}", guest.connection.remote().text(), state.error().message);
    guests_.refuse(guest, state.error().message);
  } else {
    guests_.close(guest);
  }
  return {};
}

Status Server::lost(Guest& guest, const std::string& how) {
  const std::uint32_t rank = *guest.rank;
  const std::string who = "worker " + std::to_string(rank) + " (" + guest.connection.remote().text() + ")";
  if (phase_ == Phase::gathering) {
    spdlog::warn("{} left before the start: {}; it may come back", who, how);
    for (Guest*& lane : peers_[rank].lanes) {
      if (lane != nullptr) guests_.close(*std::exchange(lane, nullptr));
    }
    return {};
  }
  const std::uint32_t step = block_ ? block_->next_step(rank) : until_;
  return make_error(who + " was lost in step " + std::to_string(step) + ": " + how +
                    "; look at its own messages, then start server and workers again");
}

Status Server::pump(Clock::time_point now) {
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    const auto wake = peer.sender.wake_at();
    if (!peer.changed && !(wake && *wake <= now)) continue;
    peer.changed = false;
    if (Status status = peer.sender.pump(now); !status) return lost(*peer.lanes[0], status.error().message);
    for (std::size_t lane = 0; lane < plan_.lanes; ++lane) {
      if (Status status = guests_.want_write(*peer.lanes[lane], peer.sender.wants_write(lane)); !status)
        return status;
    }
  }
  return {};
}

Status Server::watch_time(Clock::time_point now) {
  guests_.close_late(now);
  if (phase_ == Phase::gathering) {
    if (now >= gather_until_) {
      return make_error("workers " + missing_ranks() + " did not connect within " +
                        std::to_string(options_.wait.count()) +
                        " s: start them with `gradlane-train worker`, or allow more time with --wait");
    }
    if (now >= notice_at_) {
      spdlog::info("waiting for workers {}", missing_ranks());
      notice_at_ = now + kNoticeEvery;
    }
  } else if ((phase_ == Phase::running || phase_ == Phase::checking) && now >= heard_ + kSilence) {
    std::string ranks;
    for (std::uint32_t rank = 0; phase_ == Phase::running && rank < peers_.size(); ++rank) {
      if (block_->next_step(rank) == block_->first_step() + block_->complete_steps())
        ranks += (ranks.empty() ? ": the last ones are ranks " : ", ") + std::to_string(rank);
    }
    spdlog::warn("no worker has sent anything for {} s{}", kSilence.count(), ranks);
    heard_ = now;
  }
  return {};
}

std::optional<Clock::time_point> Server::next_time() const {
  std::optional<Clock::time_point> first = guests_.next_limit();
  const auto consider = [&first](Clock::time_point time) { first = first ? std::min(*first, time) : time; };
  for (const Peer& peer : peers_) {
    if (const auto wake = peer.sender.wake_at()) consider(*wake);
  }
  if (phase_ == Phase::gathering) consider(std::min(gather_until_, notice_at_));
  if (phase_ == Phase::running || phase_ == Phase::checking) consider(heard_ + kSilence);
  return first;
}
Status Server::next_commands() {
  while (phase_ == Phase::idle && !commands_.empty()) {
    const Command command = commands_.front();
    commands_.pop_front();
    switch (command.kind) {
      case Command::Kind::run:
        if (Status status = start_block(command.steps); !status) return status;
        break;
      case Command::Kind::check:
        phase_ = Phase::checking;
        heard_ = Clock::now();
        for (Peer& peer : peers_) {
          peer.fingerprint.reset();
          peer.lanes[0]->connection.send({.type = MessageType::check});
          peer.changed = true;
        }
        break;
      case Command::Kind::evaluate: {
        const auto evaluation = task_.evaluate();
        if (!evaluation) return evaluation.error();
        if (Status status = observer_.evaluated(until_, *evaluation); !status) return status;
        break;
      }
      case Command::Kind::finish:
        for (Peer& peer : peers_) {
          peer.lanes[0]->connection.send({.type = MessageType::finish});
          if (Status status = peer.lanes[0]->connection.flush(); !status) return status;
        }
        phase_ = Phase::finished;
        return observer_.finished(
            {.steps = until_, .checks = checks_, .fingerprint = fingerprint(task_.model)});
    }
  }
  return {};
}

Status Server::start_block(std::uint32_t steps) {
  if (steps > UINT32_MAX - 1 - until_)
    return make_error("too many steps: end this training and start another one");
  block_.emplace(setup_.workers, until_, steps);
  shown_ = 0;
  gradient_bytes_ = 0;
  parameter_bytes_before_ = parameter_bytes();
  until_ += steps;
  phase_ = Phase::running;
  heard_ = Clock::now();
  for (Peer& peer : peers_) {
    peer.lanes[0]->connection.send({.type = MessageType::run, .step = until_});
    peer.changed = true;
  }
  return {};
}

void Server::tell_all(const std::string& sentence) {
  for (Peer& peer : peers_) {
    if (peer.lanes[0] != nullptr) guests_.refuse(*peer.lanes[0], sentence);
  }
}

std::string Server::missing_ranks() const {
  std::string ranks;
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].joined()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return ranks;
}

std::uint64_t Server::parameter_bytes() const {
  std::uint64_t bytes = 0;
  for (const Peer& peer : peers_) {
    for (const Guest* guest : peer.lanes) {
      if (guest != nullptr) bytes += guest->connection.sent().slices;
    }
  }
  return bytes;
}

Result<Ending> run_server(const ServerOptions& options, ServerTask task, Observer& observer, int signal_fd) {
  auto poller = Poller::create();
  if (!poller) return poller.error();
  Server server(options, std::move(task), observer, std::move(*poller));
  return server.run(signal_fd);
}

}  // namespace gradlane::train
