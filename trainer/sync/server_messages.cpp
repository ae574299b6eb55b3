// SPDX-License-Identifier: Apache-2.0
// What becomes of each message that the server gets.
#include <string>
#include <utility>

#include "sync/server_loop.hpp"
#include "sync/step.hpp"

namespace gradlane::train {

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
  for (const Peer& other : peers_) {
    if (!other.fingerprint) return {};
  }
  const std::uint64_t own = fingerprint(task_.model);
  bool agree = true;
  for (const Peer& other : peers_) agree = agree && *other.fingerprint == own;
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
  Status status = poller_.watch(reader_->fd(), kCommandKey);
  if (status || status.error().code != EPERM) return status;
  // A regular file: all is there.
  while (!reader_->ended()) reader_->read(commands_);
  return {};
}

}  // namespace gradlane::train
