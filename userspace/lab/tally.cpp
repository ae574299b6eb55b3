// SPDX-License-Identifier: Apache-2.0
#include "lab/tally.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gradlane::lab {
namespace {

// More than that is an attack or a mistake, not a lab.
constexpr std::size_t most_flows = 65536;
constexpr std::size_t most_gaps = 1024;
constexpr std::uint32_t ethernet_bytes = 14;
constexpr std::uint8_t protocol_tcp = 6;

}  // namespace

std::uint32_t SequenceSet::add(std::uint32_t sequence, std::uint32_t length) {
  if (length == 0) return 0;
  // Sequence numbers wrap around: of all 64-bit numbers that end so, the one closest to the latest is meant.
  // The first one starts high enough for what was sent before it.
  constexpr std::uint64_t wrap = 1ULL << 32;
  if (last_ == 0) last_ = wrap + sequence;
  const auto step = static_cast<std::int32_t>(sequence - static_cast<std::uint32_t>(last_));
  // A jump back beyond the beginning can only be garbage; it counts as seen.
  if (step < 0 && last_ < wrap / 2) return 0;
  const std::uint64_t first = last_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(step));
  const std::uint64_t end = first + length;
  last_ = end;

  // Joins with all that it touches.
  std::uint64_t fresh = length;
  std::uint64_t from = first, to = end;
  auto next = seen_.upper_bound(first);
  if (next != seen_.begin() && std::prev(next)->second >= first) --next;
  while (next != seen_.end() && next->first <= end) {
    const std::uint64_t low = std::max(next->first, first);
    const std::uint64_t high = std::min(next->second, end);
    if (high > low) fresh -= high - low;
    from = std::min(from, next->first);
    to = std::max(to, next->second);
    next = seen_.erase(next);
  }
  seen_.emplace(from, to);
  if (seen_.size() > most_gaps) {
    // The oldest gap is given up as filled.
    const auto oldest = seen_.begin();
    const auto second = std::next(oldest);
    oldest->second = second->second;
    seen_.erase(second);
  }
  return static_cast<std::uint32_t>(fresh);
}

void SequenceSet::clear() {
  last_ = 0;
  seen_.clear();
}

std::size_t FlowKeyHash::operator()(const FlowKey& key) const {
  // 64-bit FNV-1a.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
  mix(key.from_end);
  mix(static_cast<std::uint64_t>(key.ip_version) << 8 | key.protocol);
  for (const auto byte : key.source) mix(byte);
  for (const auto byte : key.destination) mix(byte);
  mix(static_cast<std::uint64_t>(key.source_port) << 16 | key.destination_port);
  return hash;
}

Tally::Tally(std::vector<Mac> behind_end, std::uint32_t mtu, std::int64_t start_ns)
    : behind_end_(std::move(behind_end)), mtu_(mtu) {
  periods_.push_back(Period{"", start_ns, 0, 0, 0, {}});
}

void Tally::mark(const std::string& name, std::int64_t time_ns) { marks_.emplace_back(name, time_ns); }

void Tally::advance(std::int64_t time_ns) {
  while (!marks_.empty() && marks_.front().second <= time_ns) {
    periods_.back().end_ns = marks_.front().second;
    periods_.push_back(Period{marks_.front().first, marks_.front().second, 0, 0, 0, {}});
    marks_.pop_front();
    for (auto& [key, state] : flows_) state.counts.clear();
  }
}

void Tally::add(std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes, std::int64_t time_ns) {
  advance(time_ns);
  if (const auto frame = parse_frame(bytes, wire_bytes)) {
    count(*frame, time_ns);
  } else {
    ++periods_.back().other_packets;
    periods_.back().other_bytes += wire_bytes;
  }
}

void Tally::count(const Frame& frame, std::int64_t time_ns) {
  Period& period = periods_.back();
  // What is longer than the link allows gets cut into segments, each with all the headers.
  const std::uint32_t room =
      mtu_ + ethernet_bytes > frame.header_bytes ? mtu_ + ethernet_bytes - frame.header_bytes : 1;
  const std::uint32_t segments = std::max(1U, (frame.payload_bytes + room - 1) / room);
  const std::uint64_t wire_bytes =
      static_cast<std::uint64_t>(segments) * frame.header_bytes + frame.payload_bytes;

  FlowKey key{std::find(behind_end_.begin(), behind_end_.end(), frame.source_mac) != behind_end_.end(),
              frame.ip_version,
              frame.protocol,
              frame.source,
              frame.destination,
              frame.source_port,
              frame.destination_port};
  auto flow = flows_.find(key);
  if (flow == flows_.end()) {
    if (flows_.size() >= most_flows) {
      period.other_packets += segments;
      period.other_bytes += wire_bytes;
      return;
    }
    flow = flows_.emplace(key, FlowState{}).first;
  }
  auto& [sequence, counts] = flow->second;
  const auto [place, is_new] = counts.try_emplace({frame.dscp, frame.ecn}, period.counts.size());
  if (is_new) period.counts.push_back(FlowCount{key, frame.dscp, frame.ecn, 0, 0, 0, 0, time_ns, time_ns});
  FlowCount& entry = period.counts[place->second];
  entry.packets += segments;
  entry.wire_bytes += wire_bytes;
  entry.last_ns = time_ns;
  if (frame.starts_connection) sequence.clear();
  if (frame.protocol == protocol_tcp && frame.has_sequence) {
    const std::uint32_t fresh = sequence.add(frame.sequence, frame.payload_bytes);
    entry.payload_bytes += fresh;
    entry.retransmitted_bytes += frame.payload_bytes - fresh;
  }
}

std::vector<Period> Tally::finish(std::int64_t end_ns) {
  advance(end_ns);
  periods_.back().end_ns = end_ns;
  return std::move(periods_);
}

}  // namespace gradlane::lab
