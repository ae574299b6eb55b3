// SPDX-License-Identifier: Apache-2.0
#include "policy/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace gradlane {
namespace {

struct Quantity {
  Result<std::uint64_t> (*parse)(std::string_view);
  std::string (*format)(std::uint64_t);
  std::vector<std::pair<std::string, std::uint64_t>> units;
};

std::vector<Quantity> quantities() {
  return {{parse_rate, format_rate, {{"bit", 1}, {"kbit", 1000}, {"mbit", 1000000}, {"gbit", 1000000000}}},
          {parse_size, format_size, {{"B", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}}},
          {parse_time, format_time, {{"us", 1}, {"ms", 1000}, {"s", 1000000}}}};
}

TEST(Units, FormattedValuesParseToThemselves) {
  std::mt19937_64 random(1);
  for (const auto& quantity : quantities()) {
    for (int round = 0; round < 2000; ++round) {
      // All magnitudes, not only the largest.
      std::uint64_t value = (random() >> 5) >> (random() % 59);
      if (round % 2 == 0) value = value / 1000000 * quantity.units.back().second % 1000000000000000;
      const auto parsed = quantity.parse(quantity.format(value));
      ASSERT_TRUE(parsed) << quantity.format(value);
      EXPECT_EQ(*parsed, value) << quantity.format(value);
    }
  }
}

TEST(Units, UnitMultipliesTheNumber) {
  for (const auto& quantity : quantities()) {
    for (const auto& [unit, factor] : quantity.units) {
      const auto parsed = quantity.parse("25" + unit);
      ASSERT_TRUE(parsed) << unit;
      EXPECT_EQ(*parsed, 25 * factor) << unit;
    }
  }
}

TEST(Units, FractionsCountWhereTheResultIsWhole) {
  EXPECT_EQ(*parse_rate("2.5gbit"), 2500000000U);
  EXPECT_EQ(*parse_time("0.25ms"), 250U);
  EXPECT_EQ(*parse_size("1.5KB"), 1536U);
  EXPECT_EQ(*parse_size("1.0B"), 1U);
  EXPECT_FALSE(parse_time("0.5us"));
  EXPECT_FALSE(parse_size("0.1KB"));
}

TEST(Units, EverythingElseIsRefused) {
  for (const auto& quantity : quantities()) {
    const std::string unit = quantity.units.back().first;
    for (const std::string& text :
         {std::string(), std::string("7"), unit, "-1" + unit, "+1" + unit, "1 " + unit, " 1" + unit,
          "1" + unit + " ", "1." + unit, ".5" + unit, "1..5" + unit, "1.5.5" + unit, "1e3" + unit,
          "0x10" + unit, "1" + unit + unit, std::string("5parsec"),
          "99999999999999999999999999999999999999999" + unit, "1" + unit + std::string(1, '\0')}) {
      const auto parsed = quantity.parse(text);
      EXPECT_FALSE(parsed) << text;
      if (!parsed) {
        EXPECT_NE(parsed.error().message.find(unit), std::string::npos) << "names no unit: " << text;
      }
    }
  }
}

TEST(Units, OverflowIsRefused) {
  EXPECT_TRUE(parse_rate("18446744073gbit"));
  EXPECT_FALSE(parse_rate("18446744074gbit"));
  EXPECT_FALSE(parse_size("17179869184GB"));
  EXPECT_TRUE(parse_size("17179869183GB"));
}

}  // namespace
}  // namespace gradlane
