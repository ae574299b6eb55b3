// SPDX-License-Identifier: Apache-2.0
#include "policy/units.hpp"

#include <limits>
#include <span>

namespace gradlane {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// From small to large; the first is the base unit.
constexpr Unit rate_units[] = {
    {"bit", 1}, {"kbit", 1000}, {"mbit", 1000 * 1000}, {"gbit", 1000 * 1000 * 1000}};
constexpr Unit size_units[] = {{"B", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}};
constexpr Unit time_units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000 * 1000}};

// More digits than this are a mistake, and keep the arithmetic below 128 bits.
constexpr std::size_t max_digits = 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error not_a_quantity(std::string_view text, std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return make_error("\"" + std::string(text) + "\" is not a whole number of " + std::string(units[0].name) +
                    ": write a number and one of the units " + names + " without a space");
}

Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  unsigned __int128 digits = 0;   // the number without its point
  unsigned __int128 divisor = 1;  // 10 to the number of digits behind the point
  std::size_t at = 0;
  std::size_t count = 0;
  bool point = false;
  for (; at < text.size(); ++at) {
    if (is_digit(text[at])) {
      if (++count > max_digits) return not_a_quantity(text, units);
      digits = digits * 10 + static_cast<unsigned>(text[at] - '0');
      if (point) divisor *= 10;
    } else if (text[at] == '.' && !point && at > 0 && at + 1 < text.size() && is_digit(text[at + 1])) {
      point = true;
    } else {
      break;
    }
  }
  if (count == 0) return not_a_quantity(text, units);
  const std::string_view name = text.substr(at);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const unsigned __int128 product = digits * unit.factor;
    const unsigned __int128 whole = product / divisor;
    if (product % divisor != 0 || whole > std::numeric_limits<std::uint64_t>::max()) break;
    return static_cast<std::uint64_t>(whole);
  }
  return not_a_quantity(text, units);
}

std::string format(std::uint64_t value, std::span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) best = &unit;
  }
  return std::to_string(value / best->factor) + std::string(best->name);
}

}  // namespace

Result<std::uint64_t> parse_rate(std::string_view text) { return parse(text, rate_units); }
Result<std::uint64_t> parse_size(std::string_view text) { return parse(text, size_units); }
Result<std::uint64_t> parse_time(std::string_view text) { return parse(text, time_units); }

std::string format_rate(std::uint64_t bit_s) { return format(bit_s, rate_units); }
std::string format_size(std::uint64_t bytes) { return format(bytes, size_units); }
std::string format_time(std::uint64_t microseconds) { return format(microseconds, time_units); }

}  // namespace gradlane
