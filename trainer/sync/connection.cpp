// SPDX-License-Identifier: Apache-2.0
#include "sync/connection.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace gradlane::train {

namespace {

// Messages per system call when writing; each takes two pieces.
constexpr std::size_t kMessagesPerWrite = 32;
// What one read() takes at most, so that no connection keeps the others waiting.
constexpr std::size_t kFairShare = 256 << 10;

}  // namespace

Connection::Connection(Fd fd, std::uint8_t lane, std::uint8_t tag)
    : fd_(std::move(fd)), lane_(lane), tag_(tag) {
  if (auto local = local_address(fd_.get())) local_ = *local;
  if (auto remote = remote_address(fd_.get())) remote_ = *remote;
}

void Connection::set_lane(std::uint8_t lane, std::uint8_t tag) {
  lane_ = lane;
  tag_ = tag;
}

void Connection::push(Header header, Message message) {
  header.lane = lane_;
  header.bytes = static_cast<std::uint32_t>(message.payload.size());
  message.header = encode_header(header);
  queue_.push_back(std::move(message));
}

void Connection::send(Header header, std::vector<std::byte> payload) {
  Message message{.header = {}, .own = std::move(payload), .payload = {}, .slice = false};
  message.payload = message.own;
  push(header, std::move(message));
}

void Connection::send_slice(Header header, std::span<const std::byte> payload) {
  push(header, {.header = {}, .own = {}, .payload = payload, .slice = true});
}

Status Connection::flush() {
  while (!queue_.empty()) {
    std::array<iovec, 2 * kMessagesPerWrite> pieces{};
    std::size_t count = 0;
    std::size_t skip = written_;
    std::size_t total = 0;
    for (std::size_t index = 0; index < std::min(queue_.size(), kMessagesPerWrite); ++index) {
      const Message& message = queue_[index];
      for (const std::span<const std::byte> part :
           {std::span<const std::byte>(message.header), message.payload}) {
        const std::size_t drop = std::min(skip, part.size());
        skip -= drop;
        if (drop == part.size()) continue;
        const auto rest = part.subspan(drop);
        pieces[count++] = {.iov_base = const_cast<std::byte*>(rest.data()), .iov_len = rest.size()};
        total += rest.size();
      }
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN) return {};
      if (errno == EINTR) continue;
      return system_error("send to", remote_.text(), errno);
    }
    written(static_cast<std::size_t>(sent));
    if (static_cast<std::size_t>(sent) < total) return {};
  }
  return {};
}

void Connection::written(std::size_t bytes) {
  written_ += bytes;
  while (!queue_.empty() && written_ >= kHeaderBytes + queue_.front().payload.size()) {
    const Message& message = queue_.front();
    const std::size_t size = kHeaderBytes + message.payload.size();
    if (message.slice) {
      sent_.slices += size;
      sent_.slice_headers += kHeaderBytes;
    } else {
      sent_.control += size;
    }
    written_ -= size;
    queue_.pop_front();
  }
}

Result<ReadState> Connection::read(Receiver& receiver) {
  for (std::size_t taken = 0; taken < kFairShare;) {
    // The rest of the payload, and the next header behind it.
    std::array<iovec, 2> pieces{};
    std::size_t count = 0;
    std::size_t wanted = 0;
    if (header_) {
      const auto rest = payload_.subspan(payload_have_);
      pieces[count++] = {.iov_base = rest.data(), .iov_len = rest.size()};
      wanted += rest.size();
    }
    const auto rest = std::span(header_bytes_).subspan(header_have_);
    pieces[count++] = {.iov_base = rest.data(), .iov_len = rest.size()};
    wanted += rest.size();
    const ssize_t got = ::readv(fd_.get(), pieces.data(), static_cast<int>(count));
    if (got == 0) return ReadState::ended;
    if (got < 0) {
      if (errno == EAGAIN) break;
      if (errno == EINTR) continue;
      return system_error("receive from", remote_.text(), errno);
    }
    taken += static_cast<std::size_t>(got);
    if (Status status = advance(receiver, static_cast<std::size_t>(got)); !status) return status.error();
    // Less than asked for: the kernel has no more.
    if (static_cast<std::size_t>(got) < wanted) break;
  }
  return ReadState::open;
}

Status Connection::advance(Receiver& receiver, std::size_t bytes) {
  if (header_) {
    const std::size_t part = std::min(bytes, payload_.size() - payload_have_);
    payload_have_ += part;
    bytes -= part;
    if (payload_have_ < payload_.size()) return {};
    const Header complete = *std::exchange(header_, std::nullopt);
    if (Status status = receiver.taken(*this, complete, payload_); !status) return status;
  }
  header_have_ += bytes;
  if (header_have_ < kHeaderBytes) return {};
  header_have_ = 0;
  auto header = decode_header(header_bytes_);
  if (!header) return header.error();
  auto memory = receiver.place(*this, *header);
  if (!memory) return memory.error();
  assert(memory->size() == header->bytes);
  payload_ = *memory;
  payload_have_ = 0;
  if (header->bytes == 0) return receiver.taken(*this, *header, payload_);
  header_ = *header;
  return {};
}

}  // namespace gradlane::train
