// SPDX-License-Identifier: Apache-2.0
// Quantities with units as people write them in files: "200mbit", "64KB", "100us". A number, then a unit,
// nothing between or around them; the number may have a fraction as long as the result is a whole number of
// the base unit ("2.5gbit" is, "0.5us" is not).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace gradlane {

// Bits per second from bit, kbit, mbit, gbit (powers of 1000).
Result<std::uint64_t> parse_rate(std::string_view text);
// Bytes from B, KB, MB, GB (powers of 1024).
Result<std::uint64_t> parse_size(std::string_view text);
// Microseconds from us, ms, s.
Result<std::uint64_t> parse_time(std::string_view text);

// The inverse, in the largest unit that keeps the number whole: parse_X(format_X(n)) is n.
std::string format_rate(std::uint64_t bit_s);
std::string format_size(std::uint64_t bytes);
std::string format_time(std::uint64_t microseconds);

}  // namespace gradlane
