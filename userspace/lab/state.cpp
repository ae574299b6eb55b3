// SPDX-License-Identifier: Apache-2.0
#include "lab/state.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "lab/netns.hpp"

namespace gradlane::lab {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Host, name, daemon, zone)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Switch, name)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Link, name, a, b, rate_bit_s, buffer_bytes, host_buffer_bytes, lanes,
                                   ecn_threshold_bytes, offload)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Topology, source, name, hosts, switches, links)
NLOHMANN_JSON_SERIALIZE_ENUM(Broken, {{Broken::down, "down"}, {Broken::drop, "drop"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(State, lab, topology, complete, daemons, broken)

namespace {

std::string state_file(const std::string& lab) { return state_folder(lab) + "/state.json"; }

std::string names_of(const std::vector<std::string>& labs) {
  std::string list;
  for (const auto& lab : labs) list += (list.empty() ? "" : ", ") + lab;
  return list;
}

}  // namespace

std::string state_folder(const std::string& lab) { return std::string(state_root) + "/" + lab; }

std::string daemon_log(const std::string& lab, const std::string& host) {
  return state_folder(lab) + "/" + host + ".log";
}

std::string daemon_config(const std::string& lab, const std::string& host) {
  return state_folder(lab) + "/" + host + ".toml";
}

Result<bool> make_state_folder(const std::string& lab) {
  if (mkdir(state_root, 0755) != 0 && errno != EEXIST) return system_error("make", state_root, errno);
  if (mkdir(state_folder(lab).c_str(), 0755) == 0) return true;
  if (errno == EEXIST) return false;
  return system_error("make", state_folder(lab), errno);
}

Result<Fd> lock_lab(const std::string& lab) {
  const std::string folder = state_folder(lab);
  // Programs that we run to their end have it, too: if we are killed, the lock stays until they are done.
  Fd file(open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (!file && errno == ENOENT) return Fd();
  if (!file) return system_error("open", folder, errno);
  for (int tries = 0; flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) return system_error("lock", folder, errno);
    if (tries == 100) {
      return make_error("another command works on lab \"" + lab +
                        "\" since 10 s: wait for it or end it, then try again");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return file;
}

Status replace_file(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  std::ofstream file(draft, std::ios::trunc);
  errno = 0;
  file << text;
  file.close();
  if (!file || rename(draft.c_str(), path.c_str()) != 0) {
    const int code = errno != 0 ? errno : EIO;
    unlink(draft.c_str());
    return system_error("write", path, code);
  }
  return {};
}

Status write_state(const State& state) {
  return replace_file(state_file(state.lab), nlohmann::json(state).dump(1) + "\n");
}

Result<State> read_state(const std::string& lab) {
  std::ifstream file(state_file(lab));
  if (!file) {
    const auto labs = all_labs();
    return make_error("there is no lab \"" + lab + "\": " +
                      (labs.empty() ? "make one by `gradlane-lab up FILE`"
                                    : "give one of these by --name: " + names_of(labs)));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return nlohmann::json::parse(text).get<State>();
  } catch (const nlohmann::json::exception&) {
    return make_error(state_file(lab) + " is damaged: take the lab down by `gradlane-lab down --name " + lab +
                      "`");
  }
}

std::vector<std::string> all_labs() {
  std::set<std::string> labs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state_root, error)) {
    if (entry.is_directory(error)) labs.insert(entry.path().filename().string());
  }
  // Also those whose folder is lost.
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", error)) {
    const std::string name = entry.path().filename().string();
    const auto end = name.find('-', 3);
    if (name.starts_with("gl-") && end != std::string::npos) labs.insert(name.substr(3, end - 3));
  }
  return {labs.begin(), labs.end()};
}

}  // namespace gradlane::lab
