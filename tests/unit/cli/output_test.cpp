// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

namespace gradlane {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Table, LastColumnWrapsAtEightyAndLosesNoWord) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string sentence;
    const int words = 1 + static_cast<int>(random() % 60);
    for (int word = 0; word < words; ++word) {
      sentence += (word == 0 ? "" : " ") + std::string(1 + random() % 15, static_cast<char>('a' + word % 26));
    }
    Table table({false, false});
    const std::string first(random() % 30, 'K');
    table.add({first, sentence});
    std::string joined;
    for (const auto& line : lines_of(table.text(random() % 5))) {
      EXPECT_LE(line.size(), 80U) << line;
      EXPECT_FALSE(line.ends_with(' '));
      joined += line + " ";
    }
    std::istringstream expected(first + " " + sentence), seen(joined);
    for (std::string word; expected >> word;) {
      std::string other;
      ASSERT_TRUE(seen >> other);
      EXPECT_EQ(other, word);
    }
  }
}

TEST(Table, ColumnsAlignToTheirSide) {
  Table table({false, true, true});
  table.add({"name", "n", "value"});
  table.add({"x", "1234", "7"});
  EXPECT_EQ(table.text(1), " name     n  value\n x     1234      7\n");
}

TEST(Numbers, AreShortAndKeepThreeDigits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(99'999), "99999");
  EXPECT_EQ(short_number(100'000), "100 k");
  EXPECT_EQ(short_number(1'234'567), "1.23 M");
  EXPECT_EQ(short_number(45'600'000'000), "45.6 G");
  EXPECT_EQ(short_number(18'446'744'073'709'551'615U), "18.4 E");
  EXPECT_EQ(short_duration(59.9), "59 s");
  EXPECT_EQ(short_duration(61), "1 min 1 s");
  EXPECT_EQ(short_duration(3 * 3600 + 12 * 60), "3 h 12 min");
  EXPECT_EQ(short_duration(90'000), "1 d 1 h");
}

}  // namespace
}  // namespace gradlane
