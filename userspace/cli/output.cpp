// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace gradlane {
namespace {

constexpr std::size_t line_width = 80;
constexpr std::size_t gap = 2;  // between columns

// Words in lines of at most width; a longer word has a line of its own.
std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines;
}

}  // namespace

std::string coloured(Colour colour, const std::string& text) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  if (!terminal || colour == Colour::plain) return text;
  const char* code = colour == Colour::bold     ? "1"
                     : colour == Colour::green  ? "32"
                     : colour == Colour::yellow ? "33"
                                                : "31";
  return "\033[" + std::string(code) + "m" + text + "\033[0m";
}

std::string Table::text(std::size_t indent) const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      const std::string space(widths[column] - row[column].size(), ' ');
      line += (right_[column] ? space + row[column] : row[column] + space) + std::string(gap, ' ');
    }
    const std::size_t start = line.size();
    const std::size_t room = start + 20 < line_width ? line_width - start : 20;
    const std::string& last = row.back();
    if (right_.back()) {
      line += std::string(widths.back() - last.size(), ' ') + last;
    } else {
      const auto lines = wrap(last, room);
      for (std::size_t at = 0; at < lines.size(); ++at) {
        line += (at == 0 ? "" : "\n" + std::string(start, ' ')) + lines[at];
      }
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string short_number(std::uint64_t value) {
  if (value < 100'000) return std::to_string(value);
  double scaled = static_cast<double>(value);
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T", "P", "E"}) {
    if (scaled < 1000) break;
    scaled /= 1000;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text,
                scaled < 10    ? "%.2f %s"
                : scaled < 100 ? "%.1f %s"
                               : "%.0f %s",
                scaled, unit);
  return text;
}

std::string short_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  const auto part = [](std::uint64_t large, const char* large_unit, std::uint64_t small,
                       const char* small_unit) {
    return std::to_string(large) + large_unit + std::to_string(small) + small_unit;
  };
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return part(whole / 60, " min ", whole % 60, " s");
  if (whole < 86400) return part(whole / 3600, " h ", whole % 3600 / 60, " min");
  return part(whole / 86400, " d ", whole % 86400 / 3600, " h");
}

void print_json(const nlohmann::json& object) {
  std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

int fail(const Error& error, bool as_json) {
  if (as_json) {
    print_json({{"error", error.message}});
  } else {
    std::fprintf(stderr, "gradlane: %s\n", error.message.c_str());
  }
  return 1;
}

}  // namespace gradlane
