// SPDX-License-Identifier: Apache-2.0
// What commands print: text of at most 80 columns for people, JSON for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane {

enum class Colour { plain, bold, green, yellow, red };

// The text in that colour if standard output is a terminal (and NO_COLOR is not set), else as it is.
std::string coloured(Colour colour, const std::string& text);

// Columns that are as wide as they must be; the last one wraps at 80.
class Table {
 public:
  // Numbers are easier to compare when they end in one column: right[i] says so for column i.
  explicit Table(std::vector<bool> right) : right_(std::move(right)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // All rows, each line beginning with indent blanks.
  std::string text(std::size_t indent = 0) const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// 1234567 as "1.23 M".
std::string short_number(std::uint64_t value);
// Seconds as "3 h 12 min".
std::string short_duration(double seconds);

// The object on standard output, one line.
void print_json(const nlohmann::json& object);
// The error for a person on standard error, or {"error": SENTENCE} on standard output; returns exit status 1.
int fail(const Error& error, bool as_json);

}  // namespace gradlane
