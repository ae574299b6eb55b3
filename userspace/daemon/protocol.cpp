// SPDX-License-Identifier: Apache-2.0
#include "daemon/protocol.hpp"

#include <array>
#include <utility>

#include "daemon/names.hpp"
#include "policy/lane_config.hpp"

namespace gradlane {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, Command>, 4> commands = {{{"status", Command::status},
                                                                      {"config", Command::config},
                                                                      {"job", Command::job},
                                                                      {"stop", Command::stop}}};

// A string member, empty if it is missing or something else.
std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool has_version(const json& object) {
  const auto found = object.find("version");
  return found != object.end() && found->is_number_integer() && *found == protocol_version;
}

json parse_object(std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  return object.is_object() ? object : json(nullptr);
}

std::string format_line(const json& object) {
  // Names of files may be no UTF-8: replaced, for an answer must not fail.
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<Request> parse_request(std::string_view line) {
  if (line.size() > longest_request) return make_error("the request is longer than 64 KiB: send less");
  const json object = parse_object(line);
  if (object.is_null()) {
    return make_error(
        R"(the request is no JSON object: send one per line, such as {"version":1,"command":"status"})");
  }
  if (!has_version(object)) {
    return make_error("the request has another version: this daemon speaks version " +
                      std::to_string(protocol_version) + ", use the gradlane that belongs to it");
  }
  Request request;
  const std::string name = text_of(object, "command");
  const auto* found = commands.begin();
  while (found != commands.end() && name != found->first) ++found;
  if (found == commands.end()) {
    return make_error("unknown command \"" + name.substr(0, 64) +
                      "\": this daemon knows status, config, job and stop");
  }
  request.command = found->second;
  if (request.command == Command::job) {
    request.job = text_of(object, "name");
    if (const Status valid = check_job_name(request.job); !valid) return valid.error();
    const auto lane = lane_by_name(text_of(object, "lane"));
    if (!lane) return make_error("the lane of a job must be one of urgent, high, normal, bulk");
    request.lane = *lane;
  }
  return request;
}

std::string format_request(const Request& request) {
  json object = {{"version", protocol_version}};
  for (const auto& [name, command] : commands) {
    if (command == request.command) object["command"] = name;
  }
  if (request.command == Command::job) {
    object["name"] = request.job;
    object["lane"] = lane_name(request.lane);
  }
  return format_line(object);
}

std::string format_answer(const Result<json>& result) {
  json object = {{"version", protocol_version}, {"ok", static_cast<bool>(result)}};
  if (result) {
    object["result"] = *result;
  } else {
    object["error"] = result.error().message;
  }
  return format_line(object);
}

Result<json> parse_answer(std::string_view line) {
  json object = parse_object(line);
  if (object.is_null() || !has_version(object) || !object.contains("ok") || !object["ok"].is_boolean()) {
    return make_error("the daemon's answer is not understood: use the gradlane that belongs to it");
  }
  if (object["ok"] == false) return make_error(text_of(object, "error"));
  return std::move(object["result"]);
}

}  // namespace gradlane
