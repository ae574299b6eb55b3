// SPDX-License-Identifier: Apache-2.0
// One non-blocking TCP connection that carries messages, without copies on the way: slices are written
// straight from where the gradient lies and read straight to where the receiver wants them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "sync/socket.hpp"
#include "sync/wire.hpp"

namespace gradlane::train {

class Connection;

// Who takes the messages that a connection receives.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // A header arrived, well-formed. Returns where its payload goes: exactly header.bytes, valid until taken().
  // An error ends the connection: the message is not one to expect now.
  virtual Result<std::span<std::byte>> place(Connection& connection, const Header& header) = 0;
  // The message is complete; payload is the memory that place() gave.
  virtual Status taken(Connection& connection, const Header& header, std::span<const std::byte> payload) = 0;
};

// Bytes handed to the kernel, by what they were.
struct SentBytes {
  std::uint64_t slices = 0;         // gradient or parameters messages, with their headers
  std::uint64_t slice_headers = 0;  // of these the headers
  std::uint64_t control = 0;        // all other messages, with their headers
};

enum class ReadState { open, ended };

class Connection {
 public:
  // lane is written into every header that is sent.
  Connection(Fd fd, std::uint8_t lane, std::uint8_t tag);

  int fd() const { return fd_.get(); }
  std::uint8_t lane() const { return lane_; }
  // The lane is known only once the peer has joined.
  void set_lane(std::uint8_t lane, std::uint8_t tag);
  std::uint8_t tag() const { return tag_; }
  const Address& local() const { return local_; }
  const Address& remote() const { return remote_; }
  const SentBytes& sent() const { return sent_; }

  // Queues a small message, which the connection keeps. header.bytes and header.lane are filled in.
  void send(Header header, std::vector<std::byte> payload = {});
  // Queues a slice, whose memory must stay as it is until everything is flushed.
  void send_slice(Header header, std::span<const std::byte> payload);
  // Hands as much as possible to the kernel.
  Status flush();
  // Whether something waits to be handed to the kernel.
  bool pending() const { return !queue_.empty(); }

  // Reads what is there, at most a fair share, and hands it to receiver.
  Result<ReadState> read(Receiver& receiver);

 private:
  struct Message {
    std::array<std::byte, kHeaderBytes> header;
    std::vector<std::byte> own;
    std::span<const std::byte> payload;
    bool slice = false;
  };

  void push(Header header, Message message);
  void written(std::size_t bytes);
  Status advance(Receiver& receiver, std::size_t bytes);

  Fd fd_;
  std::uint8_t lane_;
  std::uint8_t tag_;
  Address local_;
  Address remote_;
  SentBytes sent_;

  std::deque<Message> queue_;
  std::size_t written_ = 0;  // of the first message, with its header

  std::array<std::byte, kHeaderBytes> header_bytes_{};
  std::size_t header_have_ = 0;
  std::optional<Header> header_;  // of the message whose payload is read now
  std::span<std::byte> payload_;
  std::size_t payload_have_ = 0;
};

}  // namespace gradlane::train
