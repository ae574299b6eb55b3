// SPDX-License-Identifier: Apache-2.0
// A small random generator whose numbers are the same on every machine; those of the standard distributions
// differ among libraries.
#pragma once

#include <cstdint>

namespace gradlane::train {

// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, equidistributed, any seed is good.
class Random {
 public:
  // Independent streams of one seed: each (seed, stream) has numbers of its own.
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed) ^ mix(~stream)) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    return mix(state_);
  }

  // Evenly in 0..bound-1; bound is 1..2^32. The bias, at most bound/2^64, is far below what could be seen.
  std::uint32_t below(std::uint64_t bound) {
    return static_cast<std::uint32_t>((static_cast<unsigned __int128>(next()) * bound) >> 64U);
  }

  // Evenly in [-1, 1), in steps of 2^-23, so that each value is exact.
  float symmetric() {
    return static_cast<float>(static_cast<std::int32_t>(next() >> 40U) - (1 << 23)) * 0x1p-23F;
  }

 private:
  static std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
  }

  std::uint64_t state_;
};

}  // namespace gradlane::train
