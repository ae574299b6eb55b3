// SPDX-License-Identifier: Apache-2.0
#include "lab/topology.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/files.hpp"
#include "policy/units.hpp"

namespace gradlane::lab {
namespace {

constexpr std::size_t longest_lab_name = 16;
// A name of a host is also that of an interface (IFNAMSIZ is 16).
constexpr std::size_t longest_node_name = 15;
// Addresses are 10.77.0.1 to 10.77.0.254.
constexpr std::size_t most_hosts = 254;

// One [[host]] or [[switch]] of the file: the nodes that it stands for.
struct Entry {
  std::vector<std::string> nodes;
  bool is_host = false;
};

using Read = std::function<Status(const toml::node&)>;

class Parser {
 public:
  explicit Parser(std::string source) { topology_.source = std::move(source); }

  Result<Topology> parse(const toml::table& root) {
    static const std::vector<std::string> tables = {"lab", "defaults", "host", "switch", "link"};
    for (const auto& [key, node] : root) {
      if (std::find(tables.begin(), tables.end(), key.str()) == tables.end()) {
        return at(key.source(), "there is no \"" + std::string(key.str()) +
                                    "\" here: allowed are [lab], [defaults], [[host]], [[switch]], [[link]]");
      }
    }
    Status done = read_single(root, "lab", {{"name", [this](const auto& node) { return lab_name(node); }}});
    if (done) done = read_single(root, "defaults", link_keys(defaults_));
    if (done) done = each(root, "host", [this](const toml::table& table) { return read_host(table); });
    if (done) done = each(root, "switch", [this](const toml::table& table) { return read_switch(table); });
    if (done) done = each(root, "link", [this](const toml::table& table) { return read_link(table); });
    if (done) done = check_whole();
    if (!done) return done.error();
    return std::move(topology_);
  }

  Error at(const toml::source_region& where, const std::string& sentence) const {
    return make_error(topology_.source + ":" + std::to_string(where.begin.line) + ": " + sentence);
  }

 private:
  // Reads all keys of a table; what keys does not name is refused.
  Status read_keys(const toml::table& table, const std::string& table_name,
                   const std::map<std::string, Read>& keys) const {
    for (const auto& [key, node] : table) {
      const auto found = keys.find(std::string(key.str()));
      if (found == keys.end()) {
        std::string list;
        for (const auto& [name, read] : keys) list += (list.empty() ? "" : ", ") + name;
        return at(key.source(),
                  "unknown key \"" + std::string(key.str()) + "\": " + table_name + " takes " + list);
      }
      if (Status read = found->second(node); !read) return read;
    }
    return {};
  }

  Status read_single(const toml::table& root, const std::string& name,
                     const std::map<std::string, Read>& keys) const {
    const toml::node* node = root.get(name);
    if (node == nullptr) return {};
    if (!node->is_table())
      return at(node->source(), "\"" + name + "\" must be a table: write [" + name + "]");
    return read_keys(*node->as_table(), "[" + name + "]", keys);
  }

  Status each(const toml::table& root, const std::string& name,
              const std::function<Status(const toml::table&)>& read) const {
    const toml::node* node = root.get(name);
    if (node == nullptr) return {};
    const Error wrong =
        at(node->source(), "\"" + name + "\" must be a list of tables: write [[" + name + "]] above each");
    if (!node->is_array()) return wrong;
    for (const auto& element : *node->as_array()) {
      if (!element.is_table()) return wrong;
      if (Status done = read(*element.as_table()); !done) return done;
    }
    return {};
  }

  Read text(std::string& into, const std::string& what) const {
    return [this, &into, what](const toml::node& node) -> Status {
      const auto value = node.value_exact<std::string>();
      if (!value) return at(node.source(), what);
      into = *value;
      return {};
    };
  }

  Read flag(bool& into, const std::string& key) const {
    return [this, &into, key](const toml::node& node) -> Status {
      const auto value = node.value_exact<bool>();
      if (!value) return at(node.source(), key + " must be true or false");
      into = *value;
      return {};
    };
  }

  Read size(std::uint32_t& into, const std::string& key) const {
    return [this, &into, key](const toml::node& node) -> Status {
      const auto value = node.value_exact<std::string>();
      const auto bytes = value ? parse_size(*value) : Result<std::uint64_t>(make_error(""));
      if (!bytes || *bytes < (4U << 10) || *bytes > (64U << 20)) {
        return at(node.source(), key + " must be a size from \"4KB\" to \"64MB\", such as \"64KB\"");
      }
      into = static_cast<std::uint32_t>(*bytes);
      return {};
    };
  }

  // The keys that [defaults] and [[link]] share.
  std::map<std::string, Read> link_keys(Link& link) const {
    return {
        {"rate",
         [this, &link](const toml::node& node) -> Status {
           const auto value = node.value_exact<std::string>();
           const auto rate = value ? parse_rate(*value) : Result<std::uint64_t>(make_error(""));
           if (!rate || *rate < 1'000'000 || *rate > 100'000'000'000) {
             return at(node.source(),
                       "rate must be a rate from \"1mbit\" to \"100gbit\", such as \"200mbit\"");
           }
           link.rate_bit_s = *rate;
           return {};
         }},
        {"buffer", size(link.buffer_bytes, "buffer")},
        {"host_buffer", size(link.host_buffer_bytes, "host_buffer")},
        {"ecn_threshold", size(link.ecn_threshold_bytes, "ecn_threshold")},
        {"offload", flag(link.offload, "offload")},
        {"lanes",
         [this, &link](const toml::node& node) -> Status {
           const auto value = node.value_exact<std::int64_t>();
           if (!value || *value < 1 || *value > 4) {
             return at(node.source(), "lanes must be a whole number from 1 to 4");
           }
           link.lanes = static_cast<std::uint32_t>(*value);
           return {};
         }},
    };
  }

  Status lab_name(const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value || !is_lab_name(*value)) {
      return at(node.source(),
                "a lab's name must be a lower-case letter, then up to 15 of a-z, 0-9 and _ (no hyphen)");
    }
    topology_.name = *value;
    return {};
  }

  static bool is_node_name(const std::string& name) {
    if (name.empty() || name.size() > longest_node_name || name[0] < 'a' || name[0] > 'z') return false;
    // Interfaces and folders below /proc/sys/net that every namespace has.
    if (name == "lo" || name == "all" || name == "default") return false;
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  }

  // Enters a name that may stand for several nodes; where is the table, for messages.
  Status add_entry(const toml::table& table, const std::string& table_name, const std::string& name,
                   std::int64_t count, bool is_host) {
    const toml::node* named = table.get("name");
    if (named == nullptr) return at(table.source(), table_name + " needs a name");
    Entry entry{{}, is_host};
    for (std::int64_t i = 1; i <= std::max<std::int64_t>(count, 1); ++i) {
      entry.nodes.push_back(count > 0 ? name + std::to_string(i) : name);
      if (!is_node_name(entry.nodes.back())) {
        return at(named->source(),
                  "\"" + entry.nodes.back() +
                      "\" cannot be a name: it must be a lower-case letter, then up to 14 of "
                      "a-z, 0-9 and -, and not lo, all or default");
      }
    }
    for (const auto& [other_name, other] : entries_) {
      for (const auto& node : entry.nodes) {
        if (other_name == name || std::count(other.nodes.begin(), other.nodes.end(), node) != 0) {
          return at(named->source(), "the name \"" + (other_name == name ? name : node) +
                                         "\" is taken already: every host and switch needs its own");
        }
      }
    }
    entries_.emplace(name, std::move(entry));
    return {};
  }

  Status read_host(const toml::table& table) {
    Host host;
    std::int64_t count = 0;
    const auto read_count = [&](const toml::node& node) -> Status {
      const auto value = node.value_exact<std::int64_t>();
      if (!value || *value < 1 || *value > static_cast<std::int64_t>(most_hosts)) {
        return at(node.source(), "count must be a whole number from 1 to 254");
      }
      count = *value;
      return {};
    };
    Status done = read_keys(table, "[[host]]",
                            {{"name", text(host.name, "name must be a text")},
                             {"count", read_count},
                             {"daemon", flag(host.daemon, "daemon")},
                             {"zone", text(host.zone, "zone must be a text")}});
    if (done) done = add_entry(table, "[[host]]", host.name, count, true);
    if (!done) return done;
    for (const auto& node : entries_.at(host.name).nodes) {
      topology_.hosts.push_back(Host{node, host.daemon, host.zone});
    }
    if (topology_.hosts.size() > most_hosts) {
      return at(table.source(), "there are more than 254 hosts, but the lab has only addresses for 254");
    }
    return {};
  }

  Status read_switch(const toml::table& table) {
    Switch node;
    Status done = read_keys(table, "[[switch]]", {{"name", text(node.name, "name must be a text")}});
    if (done) done = add_entry(table, "[[switch]]", node.name, 0, false);
    if (done) topology_.switches.push_back(std::move(node));
    return done;
  }

  Status read_link(const toml::table& table) {
    Link link = defaults_;
    auto keys = link_keys(link);
    keys.emplace("a", text(link.a, "a must be the name of a host or switch"));
    keys.emplace("b", text(link.b, "b must be the name of a host or switch"));
    if (Status done = read_keys(table, "[[link]]", keys); !done) return done;
    for (const char* end : {"a", "b"}) {
      const std::string& name = *end == 'a' ? link.a : link.b;
      const toml::node* node = table.get(end);
      if (node == nullptr) {
        return at(table.source(), std::string("[[link]] needs ") + end + ", the name of a host or switch");
      }
      if (find(name) == nullptr) {
        return at(node->source(),
                  "nothing is called \"" + name + "\": " + end + " must be one of " + all_names());
      }
    }
    if (link.rate_bit_s == 0) {
      return at(table.source(), "[[link]] needs a rate, here or in [defaults], such as \"200mbit\"");
    }
    if (link.ecn_threshold_bytes >= link.buffer_bytes) {
      return at(table.source(), "ecn_threshold must be below buffer, or no packet would be marked");
    }
    if (find(link.a)->is_host && find(link.b)->is_host) {
      return at(table.source(),
                "\"" + link.a + "\" and \"" + link.b +
                    "\" are both hosts: put a switch between them, and a link from each to it");
    }
    if (find(link.b)->is_host) std::swap(link.a, link.b);
    const Entry entry = *find(link.a);
    for (const auto& node : entry.nodes) {
      link.a = node;
      link.name = entry.is_host ? node : node + "-" + link.b;
      if (Status done = add_link(table, link, entry.is_host); !done) return done;
    }
    return {};
  }

  Status add_link(const toml::table& table, const Link& link, bool of_host) {
    for (const auto& other : topology_.links) {
      if (of_host && other.a == link.a) {
        return at(table.source(), "host \"" + link.a + "\" has a link already, and a host takes one");
      }
      if (other.name == link.name) {
        return at(table.source(), "two links would be called \"" + link.name + "\": rename an end of one");
      }
    }
    if (joined(link.a) == joined(link.b)) {
      return at(table.source(), "the link from \"" + link.a + "\" to \"" + link.b +
                                    "\" closes a cycle, in which bridges would forward packets for ever");
    }
    parent_[joined(link.a)] = joined(link.b);
    topology_.links.push_back(link);
    return {};
  }

  Status check_whole() {
    if (topology_.hosts.empty()) return make_error(topology_.source + ": there is no host: add a [[host]]");
    if (topology_.links.empty()) return make_error(topology_.source + ": there is no link: add a [[link]]");
    for (const auto& host : topology_.hosts) {
      if (joined(host.name) != joined(topology_.hosts.front().name)) return not_connected(host.name);
    }
    for (const auto& node : topology_.switches) {
      if (joined(node.name) != joined(topology_.hosts.front().name)) return not_connected(node.name);
    }
    return {};
  }

  Error not_connected(const std::string& name) const {
    return make_error(topology_.source + ": \"" + name + "\" is not connected to \"" +
                      topology_.hosts.front().name + "\": add a [[link]]");
  }

  // By the name in the file, or by that of one host out of several.
  const Entry* find(const std::string& name) {
    if (const auto entry = entries_.find(name); entry != entries_.end()) return &entry->second;
    for (const auto& [other_name, other] : entries_) {
      if (std::count(other.nodes.begin(), other.nodes.end(), name) != 0) {
        return &entries_.emplace(name, Entry{{name}, other.is_host}).first->second;
      }
    }
    return nullptr;
  }

  std::string all_names() const {
    std::string list;
    for (const auto& host : topology_.hosts) list += (list.empty() ? "" : ", ") + host.name;
    for (const auto& node : topology_.switches) list += (list.empty() ? "" : ", ") + node.name;
    return list.empty() ? "those of a [[host]] or [[switch]] above" : list;
  }

  // The representative of all nodes that links have joined with this one.
  std::string joined(std::string name) const {
    for (auto up = parent_.find(name); up != parent_.end(); up = parent_.find(name)) name = up->second;
    return name;
  }

  Topology topology_;
  Link defaults_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> parent_;
};

}  // namespace

bool is_lab_name(const std::string& name) {
  if (name.empty() || name.size() > longest_lab_name || name[0] < 'a' || name[0] > 'z') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

Result<Topology> parse_topology(const std::string& text, const std::string& source) {
  Parser parser(source);
  // The parser of toml++ throws: its exceptions end here.
  try {
    return parser.parse(toml::parse(text, source));
  } catch (const toml::parse_error& error) {
    return parser.at(error.source(), "this is not TOML: " + std::string(error.description()));
  }
}

Result<Topology> load_topology(const std::string& path) {
  auto text = read_file(path);
  if (!text) {
    Error error = text.error();
    error.message += "; give the path of a file as docs/lab.md describes it";
    return error;
  }
  return parse_topology(*text, path);
}

}  // namespace gradlane::lab
