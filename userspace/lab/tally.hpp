// SPDX-License-Identifier: Apache-2.0
// What a capture counts: bytes by flow, DSCP and ECN, payload told from retransmitted payload, in periods.
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lab/frame.hpp"

namespace gradlane::lab {

// Which bytes of one direction of a connection have been seen.
class SequenceSet {
 public:
  // Enters length bytes from a sequence number on; returns how many of them are new.
  std::uint32_t add(std::uint32_t sequence, std::uint32_t length);
  // Forgets all: a connection begins.
  void clear();

 private:
  std::uint64_t last_ = 0;                       // where the latest bytes were; 0: none yet
  std::map<std::uint64_t, std::uint64_t> seen_;  // first byte to the one behind the last; gaps in between
};

// One direction of a connection.
struct FlowKey {
  bool from_end = false;  // towards the end of the link, or from it
  std::uint8_t ip_version = 0, protocol = 0;
  std::array<std::uint8_t, 16> source{}, destination{};
  std::uint16_t source_port = 0, destination_port = 0;

  friend auto operator<=>(const FlowKey&, const FlowKey&) = default;
};

struct FlowKeyHash {
  std::size_t operator()(const FlowKey& key) const;
};

// What is counted apart of each other: a flow's packets with the same DSCP and ECN bits.
struct FlowCount {
  FlowKey flow;
  std::uint8_t dscp = 0, ecn = 0;
  std::uint64_t packets = 0;              // on the wire: segments
  std::uint64_t wire_bytes = 0;           // headers from Ethernet on, and payload
  std::uint64_t payload_bytes = 0;        // of TCP: each byte once
  std::uint64_t retransmitted_bytes = 0;  // of TCP: what had been seen before
  std::int64_t first_ns = 0, last_ns = 0;
};

struct Period {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t other_packets = 0, other_bytes = 0;  // not IP, or of more flows than are kept
  std::vector<FlowCount> counts;
};

class Tally {
 public:
  // mtu: of the link, by which packets larger than it are taken as segments. Times are nanoseconds since
  // 1970.
  Tally(std::vector<Mac> behind_end, std::uint32_t mtu, std::int64_t start_ns);

  // A period begins at a time; packets that are older may still come in.
  void mark(const std::string& name, std::int64_t time_ns);
  void add(std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes, std::int64_t time_ns);
  // All periods, the last one ending at a time.
  std::vector<Period> finish(std::int64_t end_ns);

 private:
  struct FlowState {
    SequenceSet sequence;
    // By DSCP and ECN, its place in the period's counts.
    std::map<std::pair<std::uint8_t, std::uint8_t>, std::size_t> counts;
  };

  void advance(std::int64_t time_ns);
  void count(const Frame& frame, std::int64_t time_ns);

  std::vector<Mac> behind_end_;
  std::uint32_t mtu_;
  std::deque<std::pair<std::string, std::int64_t>> marks_;
  std::vector<Period> periods_;
  std::unordered_map<FlowKey, FlowState, FlowKeyHash> flows_;
};

}  // namespace gradlane::lab
