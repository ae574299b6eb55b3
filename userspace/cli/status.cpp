// SPDX-License-Identifier: Apache-2.0
// gradlane status: what the daemon says about itself.
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/instance_options.hpp"
#include "cli/output.hpp"
#include "daemon/client.hpp"
#include "daemon/lock.hpp"
#include "gradlane/abi/observe.h"

namespace gradlane {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "?";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// Members of an array; nothing where a daemon of another version has none.
const json& list_at(const json& object, const char* key) {
  static const json empty = json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : empty;
}

std::string number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? short_number(found->get<std::uint64_t>())
                                                              : "?";
}

std::string meaning_of(const std::string& count) {
#define GL_MEANING(id, name, meaning) \
  if (count == (name)) return meaning;
  GL_COUNTERS(GL_MEANING)
#undef GL_MEANING
  return "";
}

std::string lanes_text(const json& status) {
  Table table({false, true, true, true, true, true, true, true});
  table.add({"lane", "tag", "dscp", "packets", "bytes", "rewritten", "senders", "grant Mbit/s"});
  for (const auto& lane : list_at(status, "lanes")) {
    const double grant = lane.value("grant_mbit_s", 0.0);
    char grant_text[32];
    std::snprintf(grant_text, sizeof grant_text, "%.1f", grant);
    table.add({text_at(lane, "lane"), text_at(lane, "tag"), text_at(lane, "dscp"), number_at(lane, "packets"),
               number_at(lane, "bytes"), number_at(lane, "rewritten"), number_at(lane, "active_senders"),
               grant > 0 ? grant_text : "-"});
  }
  return table.text(2);
}

std::string features_text(const json& status) {
  Table table({false, false});
  for (const auto& feature : list_at(status, "features")) {
    const std::string why = text_at(feature, "why");
    table.add({text_at(feature, "name"), text_at(feature, "level") + (why.empty() ? "" : ": " + why)});
  }
  return table.text(2);
}

std::string jobs_text(const json& status) {
  Table table({false, true, false});
  table.add({"name", "processes", "lane"});
  for (const auto& job : list_at(status, "jobs")) {
    table.add({text_at(job, "name"), number_at(job, "processes"), text_at(job, "lane")});
  }
  return table.text(2);
}

std::string counts_text(const json& status) {
  Table table({false, true, false});
  const auto counts = status.find("counts");
  if (counts == status.end() || !counts->is_object()) return "";
  for (const auto& [name, value] : counts->items()) {
    if (value != 0) table.add({name, number_at(*counts, name.c_str()), meaning_of(name)});
  }
  return table.text(2);
}

void print_section(const std::string& title, const std::string& text) {
  if (!text.empty()) std::printf("\n%s\n%s", coloured(Colour::bold, title).c_str(), text.c_str());
}

void print_status(const json& status) {
  std::string interfaces;
  for (const auto& name : list_at(status, "interfaces")) {
    interfaces += (interfaces.empty() ? "" : ", ") + name.get<std::string>();
  }
  Table head({false, false});
  head.add({"instance", text_at(status, "instance")});
  head.add({"daemon", "gradlaned " + text_at(status, "version") + ", pid " + text_at(status, "pid") +
                          ", up " + short_duration(status.value("uptime_s", 0.0))});
  head.add({"kernel", text_at(status, "kernel")});
  head.add({"mode", text_at(status, "mode")});
  head.add({"interfaces", interfaces});
  head.add({"cgroup", text_at(status, "cgroup")});
  std::printf("%s", head.text().c_str());
  print_section("features", features_text(status));
  print_section("lanes: sent by jobs here; senders to here and what each is granted", lanes_text(status));
  if (!list_at(status, "jobs").empty()) print_section("jobs", jobs_text(status));
  print_section("counts that are not zero", counts_text(status));
}

int run_status(const InstanceOptions& options) {
  const auto status = ask(socket_path(run_folder, options.instance), {Command::status, "", GL_LANES});
  if (!status) return fail(status.error(), options.json);
  if (options.json) {
    print_json(*status);
  } else {
    print_status(*status);
  }
  return 0;
}

}  // namespace

void add_status(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("status", "Show what the daemon of an instance does");
  const auto options = add_instance_options(*command);
  command->footer(
      "Examples:\n  gradlane status\n  gradlane status --json | jq '.lanes[] | {lane, bytes}'\n"
      "  gradlane status --instance test");
  command->callback([options, &exit_status] { exit_status = run_status(*options); });
}

}  // namespace gradlane
