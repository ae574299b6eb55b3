// SPDX-License-Identifier: Apache-2.0
// What goes over a connection between workers and parameter server: messages of a fixed header, little
// endian, and a payload. Everything is checked strictly; floats travel as they are in memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane::train {

static_assert(std::endian::native == std::endian::little, "gradients are sent as they are in memory");

// Raised with every change of header or payloads; both sides must have the same.
inline constexpr std::uint16_t kWireVersion = 1;
inline constexpr std::uint32_t kWireMagic = 0x54524c47;  // "GLRT"
inline constexpr std::size_t kHeaderBytes = 20;
// The most bytes of a slice.
inline constexpr std::size_t kMaxSliceBytes = std::size_t{16} << 20;

enum class MessageType : std::uint8_t {
  ask = 1,           // worker: its rank; the server answers with setup
  setup = 2,         // server: all settings, JSON
  join = 3,          // worker: its rank, on each of its lanes
  refuse = 4,        // server: one sentence; it closes the connection
  run = 5,           // server: work until step (not included)
  gradient = 6,      // worker: slice of step
  parameters = 7,    // server: slice after step updates
  report = 8,        // worker: what became of step
  check = 9,         // server: asks for a fingerprint
  fingerprint = 10,  // worker: of all its parameters, after step updates
  finish = 11,       // server: the end
};

struct Header {
  MessageType type = MessageType::ask;
  std::uint8_t lane = 0;    // that the connection belongs to; 0 where there is one
  std::uint32_t slice = 0;  // gradient and parameters only
  std::uint32_t step = 0;   // run, gradient, parameters, report, fingerprint only
  std::uint32_t bytes = 0;  // of the payload
};

std::array<std::byte, kHeaderBytes> encode_header(const Header& header);
// Refuses another magic or version, unknown types, lanes that do not exist, fields that the type has no use
// for, and payloads whose size does not fit the type.
Result<Header> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// Payload of ask and join: the rank.
std::vector<std::byte> encode_rank(std::uint32_t rank);
std::uint32_t decode_rank(std::span<const std::byte, 4> bytes);

// Payload of report: one step on one rank.
struct StepReport {
  double loss_sum = 0;              // over the rank's samples, before the step's update
  std::uint32_t correct = 0;        // samples classified right
  std::uint32_t samples = 0;        // at least 1
  std::uint64_t iteration_ns = 0;   // see worker.hpp
  std::uint64_t arithmetic_ns = 0;  // processor time of forward and backward
  std::uint64_t fingerprint = 0;    // of the parameters that the step began with, if has_fingerprint
  bool has_fingerprint = false;
  bool overran = false;  // the arithmetic took longer than the device that is paced for
};
inline constexpr std::size_t kReportBytes = 44;

std::vector<std::byte> encode_report(const StepReport& report);
// Refuses a loss that is not a number, a report without samples, and unknown flags.
Result<StepReport> decode_report(std::span<const std::byte, kReportBytes> bytes);

std::vector<std::byte> encode_fingerprint(std::uint64_t fingerprint);
std::uint64_t decode_fingerprint(std::span<const std::byte, 8> bytes);

// For messages: "a gradient message".
std::string describe(MessageType type);

}  // namespace gradlane::train
