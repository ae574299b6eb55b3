// SPDX-License-Identifier: Apache-2.0
#include "policy/config.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/files.hpp"
#include "policy/lane_config.hpp"
#include "policy/schema.hpp"

namespace gradlane {
namespace {

Error at_line(const std::string& source, const toml::source_region& where, const std::string& sentence) {
  return make_error(source + ":" + std::to_string(where.begin.line) + ": " + sentence);
}

std::string full_name(const ConfigKey& key) { return key.table + "." + key.key; }

// Edit distance (Levenshtein), to guess what was meant by a misspelt name.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// `unknown WHAT "NAME"; did you mean "X"? allowed here: ...`; the guess only where it is close.
std::string unknown(const std::string& what, const std::string& name, std::string_view last_part,
                    const std::vector<std::string>& allowed) {
  // Longer names are not compared: nobody misspells by that much, and the input may be hostile.
  constexpr std::size_t longest = 64;
  std::string guess;
  std::size_t best = 3;
  std::string list;
  for (const auto& candidate : allowed) {
    list += (list.empty() ? "" : ", ") + candidate;
    if (last_part.size() > longest) continue;
    const std::size_t apart = distance(last_part, candidate);
    if (apart < best) {
      best = apart;
      guess = candidate;
    }
  }
  return "unknown " + what + " \"" + name + "\";" +
         (guess.empty() ? "" : " did you mean \"" + guess + "\"?") + " allowed here: " + list;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const auto& key : config_schema()) {
    if (std::find(names.begin(), names.end(), key.table) == names.end()) names.push_back(key.table);
  }
  return names;
}

Status read_table(const std::string& table_name, const toml::table& table, Config& config) {
  std::vector<std::string> names;
  for (const auto& key : config_schema()) {
    if (key.table == table_name) names.push_back(key.key);
  }
  for (const auto& [name, node] : table) {
    const auto found =
        std::find_if(config_schema().begin(), config_schema().end(),
                     [&](const ConfigKey& key) { return key.table == table_name && key.key == name.str(); });
    if (found == config_schema().end()) {
      return at_line(config.source, name.source(),
                     unknown("key", table_name + "." + std::string(name.str()), name.str(), names));
    }
    if (const toml::node* wrong = found->read(node, config)) {
      return at_line(config.source, wrong->source(), full_name(*found) + " must be " + found->allowed);
    }
  }
  return {};
}

// The two lanes that hold the same value, if any do.
template <typename T>
std::string duplicate(const std::array<T, GL_LANES>& values) {
  for (int a = 0; a < GL_LANES; ++a) {
    for (int b = a + 1; b < GL_LANES; ++b) {
      if (values[a] == values[b]) {
        return std::string(lane_name(static_cast<gl_lane>(a))) + " and " +
               lane_name(static_cast<gl_lane>(b)) + " both have " + std::to_string(values[a]);
      }
    }
  }
  return {};
}

bool is_reserved_dscp(std::uint8_t dscp) { return dscp == 24 || dscp == 26 || dscp == 46 || dscp == 48; }

// Where a key stands; the start of the file where it was left at its default.
toml::source_region where_is(const toml::table& root, std::string_view table, std::string_view key) {
  const auto view = root[table][key];
  if (view) return view.node()->source();
  return toml::source_region{{1, 1}, {1, 1}, nullptr};
}

// What no single key can tell.
Status check_together(const toml::table& root, const Config& config) {
  if (config.link.interfaces.empty()) {
    return make_error(
        config.source +
        ": link.interfaces is missing: name the host's uplinks, such as interfaces = [\"eth0\"] "
        "below [link]");
  }
  const auto dscp_at = where_is(root, "lanes", "dscp");
  if (const auto twice = duplicate(config.lanes.priority); !twice.empty()) {
    return at_line(config.source, where_is(root, "lanes", "priority"),
                   "lanes.priority must be different for every lane: " + twice);
  }
  if (const auto twice = duplicate(config.lanes.dscp); !twice.empty()) {
    return at_line(config.source, dscp_at, "lanes.dscp must be different for every lane: " + twice);
  }
  for (int lane = 0; lane < GL_LANES; ++lane) {
    if (is_reserved_dscp(config.lanes.dscp[lane]) && !config.lanes.allow_reserved_dscp) {
      return at_line(config.source, dscp_at,
                     "lanes.dscp gives " + std::string(lane_name(static_cast<gl_lane>(lane))) + " " +
                         std::to_string(config.lanes.dscp[lane]) +
                         ", which RoCE and voice use (24, 26, 46, 48): choose another, or set "
                         "lanes.allow_reserved_dscp = true");
    }
  }
  if (config.scc.near_round_trip_us < config.link.round_trip_us) {
    const bool named = static_cast<bool>(root["scc"]["near_round_trip"]);
    return at_line(config.source,
                   named ? where_is(root, "scc", "near_round_trip") : where_is(root, "link", "round_trip"),
                   "scc.near_round_trip must not be below link.round_trip, or no peer is near");
  }
  return {};
}

Result<Config> read_root(const toml::table& root, const std::string& source) {
  Config config;
  config.source = source;
  const auto tables = table_names();
  for (const auto& [name, node] : root) {
    const std::string table_name(name.str());
    if (std::find(tables.begin(), tables.end(), table_name) == tables.end()) {
      return at_line(source, name.source(),
                     unknown(node.is_table() ? "table" : "key", table_name, table_name, tables));
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return at_line(source, node.source(), table_name + " must be a table: write [" + table_name + "]");
    }
    if (const Status read = read_table(table_name, *table, config); !read) return read.error();
  }
  if (const Status checked = check_together(root, config); !checked) return checked.error();
  return config;
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& source) {
  // The parser of toml++ throws: its exceptions end here.
  try {
    return read_root(toml::parse(text, source), source);
  } catch (const toml::parse_error& error) {
    return at_line(source, error.source(), "this is not TOML: " + std::string(error.description()));
  }
}

Result<Config> load_config(const std::string& path) {
  auto text = read_file(path);
  if (!text) {
    Error error = text.error();
    error.message += "; give another file, or copy the default one there and name the interfaces";
    return error;
  }
  return parse_config(*text, path);
}

}  // namespace gradlane
