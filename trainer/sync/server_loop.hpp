// SPDX-License-Identifier: Apache-2.0
// The inside of the parameter server, which server.hpp runs. server.cpp has the event loop,
// server_messages.cpp what becomes of each message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "sync/commands.hpp"
#include "sync/guest.hpp"
#include "sync/observer.hpp"
#include "sync/parameter_store.hpp"
#include "sync/poller.hpp"
#include "sync/sender.hpp"
#include "sync/server.hpp"
#include "sync/statistics.hpp"

namespace gradlane::train {

// Keys in the poller; guests have those from kFirstGuestKey on.
inline constexpr std::uint64_t kListenerKey = 1;
inline constexpr std::uint64_t kSignalKey = 2;
inline constexpr std::uint64_t kCommandKey = 3;
inline constexpr std::uint64_t kFirstGuestKey = 16;

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

// The loop and all that it keeps; see server.hpp.
class Server {
 public:
  Server(const ServerOptions& options, ServerTask task, Observer& observer, Poller poller);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Result<Ending> run(int signal_fd);

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

}  // namespace gradlane::train
