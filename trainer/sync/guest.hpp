// SPDX-License-Identifier: Apache-2.0
// The connections of a server: accepts them, watches them, and takes leave of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "schedule/schedule.hpp"
#include "sync/connection.hpp"
#include "sync/poller.hpp"

namespace gradlane::train {

// An accepted connection: unknown at first, later one lane of a worker.
struct Guest {
  std::uint64_t key = 0;  // in the poller
  Connection connection;
  std::optional<std::uint32_t> rank;       // once it has joined
  std::optional<Clock::time_point> limit;  // to join, or to leave; none once it has joined
  bool leaving = false;  // was told all that there is to say; what it sends is no longer read
  bool writable_watched = false;
  std::vector<std::byte> payload;  // of the control message being read

  Guest(std::uint64_t id, Fd fd) : key(id), connection(std::move(fd), 0, 0) {}
};

// All of them, by their key in the poller, which starts at first_key.
class GuestBook {
 public:
  GuestBook(Poller& poller, std::uint64_t first_key) : poller_(poller), next_key_(first_key) {}

  // Accepts all that wait on a listening socket.
  Status accept_from(int listener);
  // nullptr: it has gone in the meantime.
  Guest* find(std::uint64_t key);
  // Tells it one sentence and waits for it to go.
  void refuse(Guest& guest, const std::string& sentence);
  void close(Guest& guest);
  // Also watches for writability if wanted.
  Status want_write(Guest& guest, bool wanted);
  // Reads on what a leaving guest sends; closes it once it has gone.
  void read_off(Guest& guest);
  // Closes whoever had to join or leave by now.
  void close_late(Clock::time_point now);
  std::optional<Clock::time_point> next_limit() const;
  // Closes whoever has not joined. Of the others, flushes and waits until all have gone, no longer than until
  // then. Nothing but guests may be in the poller.
  void part(Clock::time_point until);
  void for_each(const std::function<void(Guest&)>& action);

 private:
  Poller& poller_;
  std::uint64_t next_key_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Guest>> guests_;
};

}  // namespace gradlane::train
