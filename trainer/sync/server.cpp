// SPDX-License-Identifier: Apache-2.0
#include "sync/server.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sync/byte_log.hpp"
#include "sync/guest.hpp"
#include "sync/poller.hpp"
#include "sync/sender.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

namespace {

constexpr std::uint64_t kListenerKey = 1;
constexpr std::uint64_t kSignalKey = 2;
constexpr std::uint64_t kCommandKey = 3;
constexpr std::uint64_t kFirstGuestKey = 16;

constexpr auto kNoticeEvery = std::chrono::seconds(5);
constexpr auto kSilence = std::chrono::seconds(10);
constexpr auto kPartFinished = std::chrono::seconds(5);
constexpr auto kPartFailed = std::chrono::seconds(1);

// A worker: its connections, and what is on its way to it.
struct Peer {
  std::vector<Guest*> lanes;  // nullptr: not joined yet
  Sender sender;
  bool changed = false;                      // the sender has to be asked
  std::optional<std::uint64_t> fingerprint;  // the answer to a check

  Peer(const Plan& plan, std::uint32_t slice_bytes)
      : lanes(plan.lanes, nullptr), sender(plan, MessageType::parameters, slice_bytes) {}
  bool joined() const { return std::find(lanes.begin(), lanes.end(), nullptr) == lanes.end(); }
};

class Server {
 public:
  Server(const ServerOptions& options, ServerTask task, Observer& observer, Poller poller)
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
    for (std::uint32_t rank = 0; rank < setup_.workers; ++rank)
      peers_.emplace_back(plan_, setup_.slice_bytes);
  }

  Result<Ending> run(int signal_fd) {
    if (Status status = start(signal_fd); !status) return status.error();
    Result<Ending> ending = loop(signal_fd);
    Status status = ending ? Status{} : Status{ending.error()};
    if (!ending) tell_all("the server ended: " + ending.error().message);
    if (ending && ending->signal != 0) tell_all("the server was ended by a signal");
    if (Status left = leave(status && ending->signal == 0); status && !left) return left.error();
    return ending;
  }

 private:
  enum class Phase : std::uint8_t { gathering, idle, running, checking, finished };

  // Hands what a guest sends to the server.
  class GuestReceiver final : public Receiver {
   public:
    GuestReceiver(Server& server, Guest& guest) : server_(server), guest_(guest) {}
    Result<std::span<std::byte>> place(Connection& /*connection*/, const Header& header) override {
      return server_.place(guest_, header);
    }
    Status taken(Connection& /*connection*/, const Header& header,
                 std::span<const std::byte> payload) override {
      return server_.taken(guest_, header, payload);
    }

   private:
    Server& server_;
    Guest& guest_;
  };

  Status start(int signal_fd);
  Result<Ending> loop(int signal_fd);
  Status leave(bool well);

  Status handle(const PollEvent& event);
  Status read_from(Guest& guest);
  Status lost(Guest& guest, const std::string& how);
  Status pump(Clock::time_point now);
  Status watch_time(Clock::time_point now);
  std::optional<Clock::time_point> next_time() const;

  Result<std::span<std::byte>> place(Guest& guest, const Header& header);
  Result<std::span<std::byte>> place_slice(Guest& guest, const Header& header);
  Status taken(Guest& guest, const Header& header, std::span<const std::byte> payload);
  Status slice_arrived(std::uint32_t rank, std::uint32_t slice);
  Status reported(std::uint32_t rank, std::uint32_t step, const StepReport& report);
  Status fingerprint_arrived(std::uint32_t rank, std::uint32_t step, std::uint64_t fingerprint);

  Status introduce(Guest& guest, const Header& header, std::uint32_t rank);
  Status join(Guest& guest, std::uint8_t lane, std::uint32_t rank);
  Status all_joined();
  Status next_commands();
  Status start_block(std::uint32_t steps);
  void tell_all(const std::string& sentence);
  std::string missing_ranks() const;
  std::uint64_t parameter_bytes() const;

  const ServerOptions& options_;
  TrainingSetup setup_;
  ServerTask task_;
  Observer& observer_;
  Poller poller_;
  GuestBook guests_;
  Plan plan_;
  ParameterStore store_;
  Fd listener_;
  std::vector<Peer> peers_;
  std::deque<Command> commands_;
  std::optional<CommandReader> reader_;

  Phase phase_ = Phase::gathering;
  std::uint32_t until_ = 0;  // steps below it are allowed
  std::optional<BlockCollector> block_;
  std::uint32_t shown_ = 0;           // steps of the block that the observer knows
  std::uint64_t gradient_bytes_ = 0;  // received in this block
  std::uint64_t parameter_bytes_before_ = 0;
  std::uint64_t updates_ = 0;                            // of slices, in all
  std::map<std::uint32_t, std::uint64_t> fingerprints_;  // of the server's parameters, by steps done
  std::uint32_t checks_ = 0;
  Clock::time_point gather_until_;
  Clock::time_point notice_at_;
  Clock::time_point heard_;  // when a worker was heard of for the last time
};

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
    if (Status status = peer.sender.pump(now); !status) {
      // Reading tells the whole story where the peer said why it goes.
      return lost(*peer.lanes[0], status.error().message);
    }
    for (std::uint8_t lane = 0; lane < plan_.lanes; ++lane) {
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

Result<std::span<std::byte>> Server::place(Guest& guest, const Header& header) {
  if (guest.leaving) return make_error("the peer was refused");
  const bool introduction = header.type == MessageType::ask || header.type == MessageType::join;
  const bool fits = guest.rank ? header.type == MessageType::gradient || header.type == MessageType::report ||
                                     header.type == MessageType::fingerprint
                               : introduction;
  if (!fits) return make_error("the peer sent " + describe(header.type) + ", which nobody asked for");
  if (guest.rank && header.lane != guest.connection.lane())
    return make_error("the peer sent " + describe(header.type) + " of another lane");
  if (header.type == MessageType::gradient) return place_slice(guest, header);
  guest.payload.resize(header.bytes);
  return std::span<std::byte>(guest.payload);
}

Result<std::span<std::byte>> Server::place_slice(Guest& guest, const Header& header) {
  const std::string what = "the peer sent the gradient of slice " + std::to_string(header.slice) +
                           " in step " + std::to_string(header.step);
  if (header.slice >= plan_.slices.size() || header.bytes != plan_.slices[header.slice].bytes() ||
      header.lane != plan_.lane_of[header.slice])
    return make_error(what + ", which does not exist like that");
  if (header.step != store_.version(header.slice) || header.step >= until_ ||
      store_.has(*guest.rank, header.slice))
    return make_error(what + " at a wrong time");
  return std::as_writable_bytes(store_.gradient(*guest.rank, header.slice));
}

Status Server::taken(Guest& guest, const Header& header, std::span<const std::byte> payload) {
  heard_ = Clock::now();
  switch (header.type) {
    case MessageType::ask:
    case MessageType::join:
      return introduce(guest, header, decode_rank(payload.first<4>()));
    case MessageType::gradient:
      gradient_bytes_ += kHeaderBytes + payload.size();
      return slice_arrived(*guest.rank, header.slice);
    case MessageType::report: {
      const auto report = decode_report(payload.first<kReportBytes>());
      if (!report) return report.error();
      return reported(*guest.rank, header.step, *report);
    }
    case MessageType::fingerprint:
      return fingerprint_arrived(*guest.rank, header.step, decode_fingerprint(payload.first<8>()));
    default:
      return make_error("the peer sent " + describe(header.type));
  }
}

Status Server::slice_arrived(std::uint32_t rank, std::uint32_t slice) {
  if (!store_.arrived(rank, slice)) return {};
  ++updates_;
  const std::uint32_t version = store_.version(slice);
  for (Peer& peer : peers_) {
    peer.sender.add(slice, version, std::as_bytes(store_.parameters(slice)));
    peer.changed = true;
  }
  // No gradient of the next step is in yet: no worker ends its forward pass before it has this slice.
  const bool step_done = updates_ % plan_.slices.size() == 0;
  if (step_done && setup_.check_every != 0 && version % setup_.check_every == 0)
    fingerprints_[version] = fingerprint(task_.model);
  return {};
}

Status Server::reported(std::uint32_t rank, std::uint32_t step, const StepReport& report) {
  if (!block_ || block_->next_step(rank) != step || step >= until_)
    return make_error("the peer sent a report on step " + std::to_string(step) + " at a wrong time");
  if (report.has_fingerprint) {
    const auto expected = fingerprints_.find(step);
    if (expected == fingerprints_.end() || expected->second != report.fingerprint) {
      return make_error("its weights differ from the server's at step " + std::to_string(step) +
                        ": this must not happen, please report it");
    }
  }
  block_->add(rank, report);
  while (shown_ < block_->complete_steps()) {
    const std::uint32_t shown_step = block_->first_step() + shown_;
    checks_ += fingerprints_.erase(shown_step);
    if (Status status = observer_.progressed(shown_step, block_->loss(shown_)); !status) return status;
    ++shown_;
  }
  if (!block_->complete()) return {};
  BlockResult result = block_->result();
  result.gradient_bytes = std::exchange(gradient_bytes_, 0);
  result.parameter_bytes = parameter_bytes() - parameter_bytes_before_;
  phase_ = Phase::idle;
  return observer_.block(result);
}

Status Server::fingerprint_arrived(std::uint32_t rank, std::uint32_t step, std::uint64_t value) {
  Peer& peer = peers_[rank];
  if (phase_ != Phase::checking || peer.fingerprint || step != until_)
    return make_error("the peer sent a fingerprint that nobody asked for");
  peer.fingerprint = value;
  const std::uint64_t own = fingerprint(task_.model);
  bool agree = true;
  for (const Peer& other : peers_) {
    if (!other.fingerprint) return {};
    agree = agree && *other.fingerprint == own;
  }
  phase_ = Phase::idle;
  ++checks_;
  if (Status status = observer_.checked({.step = until_, .fingerprint = own, .agree = agree}); !status)
    return status;
  if (!agree) return make_error("the workers' weights differ: this must not happen, please report it");
  return {};
}

Status Server::introduce(Guest& guest, const Header& header, std::uint32_t rank) {
  if (rank >= setup_.workers) {
    guests_.refuse(guest, "there is no rank " + std::to_string(rank) + ": this training has --workers " +
                              std::to_string(setup_.workers) + ", ranks 0 to " +
                              std::to_string(setup_.workers - 1));
    return {};
  }
  if (peers_[rank].joined()) {
    guests_.refuse(guest, "rank " + std::to_string(rank) + " is taken by " +
                              peers_[rank].lanes[0]->connection.remote().text() +
                              ": give each worker a rank of its own with --rank");
    return {};
  }
  if (header.type == MessageType::join) return join(guest, header.lane, rank);
  const std::string text = setup_to_json(setup_);
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  guest.connection.send({.type = MessageType::setup}, {begin, begin + text.size()});
  if (Status status = guest.connection.flush(); !status) return status;
  return {};
}

Status Server::join(Guest& guest, std::uint8_t lane, std::uint32_t rank) {
  Peer& peer = peers_[rank];
  if (lane >= plan_.lanes || peer.lanes[lane] != nullptr) {
    guests_.refuse(guest, "rank " + std::to_string(rank) + " cannot have lane " + std::to_string(lane) +
                              " (again): give each worker a rank of its own with --rank");
    return {};
  }
  // accept() gives sockets without a tag, whatever the listener has.
  const SocketOptions options = plan_.socket_options(setup_, lane);
  if (Status status = set_options(guest.connection.fd(), options); !status) return status;
  guest.connection.set_lane(lane, options.tag);
  guest.rank = rank;
  guest.limit.reset();
  peer.lanes[lane] = &guest;
  peer.sender.attach(lane, guest.connection);
  for (const Peer& other : peers_) {
    if (!other.joined()) return {};
  }
  return all_joined();
}

Status Server::all_joined() {
  phase_ = Phase::idle;
  heard_ = Clock::now();
  for (Peer& peer : peers_) {
    for (std::uint32_t slice = 0; slice < plan_.slices.size(); ++slice)
      peer.sender.add(slice, 0, std::as_bytes(store_.parameters(slice)));
    peer.changed = true;
  }
  if (Status status = observer_.ready(setup_, task_.model); !status) return status;
  if (!reader_) return {};
  const Status status = poller_.watch(reader_->fd(), kCommandKey);
  if (status || status.error().code != EPERM) return status;
  // A regular file: all is there.
  while (!reader_->ended()) reader_->read(commands_);
  return {};
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

}  // namespace

Result<Ending> run_server(const ServerOptions& options, ServerTask task, Observer& observer, int signal_fd) {
  auto poller = Poller::create();
  if (!poller) return poller.error();
  Server server(options, std::move(task), observer, std::move(*poller));
  return server.run(signal_fd);
}

}  // namespace gradlane::train
