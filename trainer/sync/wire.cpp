// SPDX-License-Identifier: Apache-2.0
#include "sync/wire.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "gradlane/abi/lane.h"

namespace gradlane::train {

namespace {

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void store(std::span<std::byte> bytes, std::size_t offset, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// What each type may carry.
struct TypeRules {
  const char* name;
  std::uint32_t least_bytes;
  std::uint32_t most_bytes;
  bool has_slice;
  bool has_step;
};

constexpr std::uint32_t kMostText = 4096;
constexpr std::uint32_t kMostSetup = 65536;

// Indexed by type - 1.
constexpr std::array kRules = {
    TypeRules{"ask", 4, 4, false, false},
    TypeRules{"setup", 2, kMostSetup, false, false},
    TypeRules{"join", 4, 4, false, false},
    TypeRules{"refuse", 1, kMostText, false, false},
    TypeRules{"run", 0, 0, false, true},
    TypeRules{"gradient", 4, kMaxSliceBytes, true, true},
    TypeRules{"parameters", 4, kMaxSliceBytes, true, true},
    TypeRules{"report", kReportBytes, kReportBytes, false, true},
    TypeRules{"check", 0, 0, false, false},
    TypeRules{"fingerprint", 8, 8, false, true},
    TypeRules{"finish", 0, 0, false, false},
};

const TypeRules& rules_of(MessageType type) { return kRules[static_cast<std::size_t>(type) - 1]; }

constexpr std::uint32_t kFlagFingerprint = 1;
constexpr std::uint32_t kFlagOverran = 2;

}  // namespace

std::array<std::byte, kHeaderBytes> encode_header(const Header& header) {
  std::array<std::byte, kHeaderBytes> bytes{};
  store(bytes, 0, kWireMagic);
  store(bytes, 4, kWireVersion);
  store(bytes, 6, header.type);
  store(bytes, 7, header.lane);
  store(bytes, 8, header.slice);
  store(bytes, 12, header.step);
  store(bytes, 16, header.bytes);
  return bytes;
}

Result<Header> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  if (load<std::uint32_t>(bytes, 0) != kWireMagic)
    return make_error("the peer is no gradlane-train: its message does not begin as one");
  const auto version = load<std::uint16_t>(bytes, 4);
  if (version != kWireVersion) {
    return make_error("the peer speaks version " + std::to_string(version) +
                      " of the protocol and this host version " + std::to_string(kWireVersion) +
                      ": install the same gradlane on all hosts");
  }
  const auto type = load<std::uint8_t>(bytes, 6);
  if (type < 1 || type > kRules.size())
    return make_error("the peer sent a message of the unknown type " + std::to_string(type));
  Header header{.type = static_cast<MessageType>(type),
                .lane = load<std::uint8_t>(bytes, 7),
                .slice = load<std::uint32_t>(bytes, 8),
                .step = load<std::uint32_t>(bytes, 12),
                .bytes = load<std::uint32_t>(bytes, 16)};
  const TypeRules& rules = rules_of(header.type);
  const std::string subject = "the peer sent " + describe(header.type);
  if (header.lane >= GL_LANES)
    return make_error(subject + " for lane " + std::to_string(header.lane) + ", which does not exist");
  if (!rules.has_slice && header.slice != 0)
    return make_error(subject + " with a slice, which it cannot have");
  if (!rules.has_step && header.step != 0) return make_error(subject + " with a step, which it cannot have");
  if (header.bytes < rules.least_bytes || header.bytes > rules.most_bytes)
    return make_error(subject + " of " + std::to_string(header.bytes) + " bytes, which it cannot have");
  if (rules.has_slice && header.bytes % sizeof(float) != 0)
    return make_error(subject + " that ends within a number");
  return header;
}

std::vector<std::byte> encode_rank(std::uint32_t rank) {
  std::vector<std::byte> bytes(sizeof rank);
  store(bytes, 0, rank);
  return bytes;
}

std::uint32_t decode_rank(std::span<const std::byte, 4> bytes) { return load<std::uint32_t>(bytes, 0); }

std::vector<std::byte> encode_report(const StepReport& report) {
  std::vector<std::byte> bytes(kReportBytes);
  store(bytes, 0, report.loss_sum);
  store(bytes, 8, report.correct);
  store(bytes, 12, report.samples);
  store(bytes, 16, report.iteration_ns);
  store(bytes, 24, report.arithmetic_ns);
  store(bytes, 32, report.fingerprint);
  store(bytes, 40, (report.has_fingerprint ? kFlagFingerprint : 0) | (report.overran ? kFlagOverran : 0));
  return bytes;
}

Result<StepReport> decode_report(std::span<const std::byte, kReportBytes> bytes) {
  const auto flags = load<std::uint32_t>(bytes, 40);
  StepReport report{.loss_sum = load<double>(bytes, 0),
                    .correct = load<std::uint32_t>(bytes, 8),
                    .samples = load<std::uint32_t>(bytes, 12),
                    .iteration_ns = load<std::uint64_t>(bytes, 16),
                    .arithmetic_ns = load<std::uint64_t>(bytes, 24),
                    .fingerprint = load<std::uint64_t>(bytes, 32),
                    .has_fingerprint = (flags & kFlagFingerprint) != 0,
                    .overran = (flags & kFlagOverran) != 0};
  if ((flags & ~(kFlagFingerprint | kFlagOverran)) != 0)
    return make_error("the peer sent a report with unknown flags");
  if (report.samples == 0 || report.correct > report.samples)
    return make_error("the peer sent a report about no samples, or more right ones than there are");
  if (std::isnan(report.loss_sum))
    return make_error("the loss is not a number any more: choose a smaller learning rate");
  return report;
}

std::vector<std::byte> encode_fingerprint(std::uint64_t fingerprint) {
  std::vector<std::byte> bytes(sizeof fingerprint);
  store(bytes, 0, fingerprint);
  return bytes;
}

std::uint64_t decode_fingerprint(std::span<const std::byte, 8> bytes) {
  return load<std::uint64_t>(bytes, 0);
}

std::string describe(MessageType type) {
  const std::string name = rules_of(type).name;
  return (name.starts_with('a') ? "an " : "a ") + name + " message";
}

}  // namespace gradlane::train
