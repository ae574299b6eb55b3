// SPDX-License-Identifier: Apache-2.0
// gradlane doctor: what this host can do and what to change, with a daemon or without.
#include <sys/utsname.h>

#include <cstdio>
#include <memory>
#include <sstream>

#include "bpf/datapath.hpp"
#include "cli/commands.hpp"
#include "cli/egress_programs.hpp"
#include "cli/instance_options.hpp"
#include "cli/output.hpp"
#include "core/files.hpp"
#include "daemon/client.hpp"
#include "daemon/host.hpp"
#include "daemon/lock.hpp"
#include "daemon/report.hpp"
#include "policy/config.hpp"

namespace gradlane {
namespace {

struct DoctorOptions {
  std::string config = "/etc/gradlane/gradlaned.toml";
  std::shared_ptr<InstanceOptions> instance;
};

enum class Verdict { ok, warn, fail };

struct Finding {
  std::string name;
  Verdict verdict;
  std::string text;  // what is, and what to do about it
};

using Findings = std::vector<Finding>;

const char* verdict_name(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warn ? "warn" : "fail";
}

// ok with a text, or the error with a verdict.
Finding judge(const std::string& name, const Status& status, const std::string& good, Verdict bad) {
  return status ? Finding{name, Verdict::ok, good} : Finding{name, bad, status.error().message};
}

Finding check_kernel() {
  utsname kernel{};
  uname(&kernel);
  int major = 0, minor = 0;
  std::sscanf(kernel.release, "%d.%d", &major, &minor);
  if (major > 6 || (major == 6 && minor >= 1)) return {"kernel", Verdict::ok, kernel.release};
  return {"kernel", Verdict::warn,
          std::string(kernel.release) + " is older than 6.1, which is the oldest that is tested: update it"};
}

void check_host(Findings& findings) {
  findings.push_back(check_kernel());
  findings.push_back(judge("types", check_btf(), "the kernel describes its types (BTF)", Verdict::fail));
  const auto mount = find_cgroup2();
  findings.push_back(mount ? Finding{"cgroup", Verdict::ok, "cgroup v2 at " + *mount}
                           : Finding{"cgroup", Verdict::fail, mount.error().message});
  findings.push_back(
      bpf_file_system_mounted()
          ? Finding{"bpffs", Verdict::ok, "the BPF file system is at /sys/fs/bpf"}
          : Finding{"bpffs", Verdict::warn,
                    "nothing is mounted at /sys/fs/bpf: gradlaned will do it, or now: mount -t bpf "
                    "bpf /sys/fs/bpf"});
  findings.push_back(judge("privileges", check_privileges(), "enough to load everything", Verdict::warn));
}

void check_features(Findings& findings) {
  for (const auto& feature : probe_features()) {
    const bool full = feature.level == FeatureLevel::full;
    findings.push_back(
        {feature.name, full ? Verdict::ok : Verdict::warn,
         std::string(level_name(feature.level)) + (feature.why.empty() ? "" : ": " + feature.why)});
  }
}

Finding check_congestion_control() {
  const auto text = read_file("/proc/sys/net/ipv4/tcp_congestion_control");
  if (!text) return {"tcp", Verdict::warn, text.error().message};
  const std::string name = text->substr(0, text->find('\n'));
  if (name == "gl_scc") {
    return {"tcp", Verdict::warn,
            "gl_scc is the congestion control of all sockets, not only of jobs: set "
            "net.ipv4.tcp_congestion_control back to cubic"};
  }
  return {"tcp", Verdict::ok,
          name + " is the default congestion control; all but near connections of jobs keep it"};
}

// The interface of the default route, empty if there is none.
std::string default_interface() {
  const auto text = read_file("/proc/net/route");
  if (!text) return "";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string interface, destination;
    if (fields >> interface >> destination && destination == "00000000") return interface;
  }
  return "";
}

// The configuration, and the uplinks that it names; without one, the interface of the default route.
std::vector<std::string> check_config(const std::string& path, Findings& findings) {
  const auto config = load_config(path);
  if (config) {
    findings.push_back({"config", Verdict::ok, path + " is valid"});
    return config->link.interfaces;
  }
  // A file that is not there is no fault yet; one that is wrong is.
  findings.push_back(
      {"config", config.error().code == ENOENT ? Verdict::warn : Verdict::fail, config.error().message});
  const std::string interface = default_interface();
  return interface.empty() ? std::vector<std::string>{} : std::vector<std::string>{interface};
}

Finding check_uplink(const std::string& interface) {
  const std::string name = "uplink " + interface;
  const auto programs = egress_programs(interface);
  if (!programs) return {name, Verdict::fail, programs.error().message + "; correct link.interfaces"};
  std::string ahead, others;
  bool ours = false;
  for (const auto& program : programs->tcx) {
    ours = ours || program.ours;
    if (program.ours) continue;
    auto& list = ours ? others : ahead;
    list += (list.empty() ? "" : ", ") + program.name;
  }
  for (const auto& kind : programs->filters)
    others += (others.empty() ? "" : ", ") + ("a " + kind + " filter");
  if (!ahead.empty()) {
    return {
        name, Verdict::warn,
        ahead +
            " at its egress runs before our marker: packets to which it gives a final verdict stay unmarked; "
            "it must return TCX_NEXT"};
  }
  return {
      name, Verdict::ok,
      others.empty() ? "no program of others at its egress" : "at its egress, after our marker: " + others};
}

Finding check_daemon(const std::string& instance) {
  const auto status = ask(socket_path(run_folder, instance), {Command::status, "", GL_LANES});
  if (status) return {"daemon", Verdict::ok, "instance " + instance + " answers"};
  return {"daemon", Verdict::warn, status.error().message};
}

// The table with its first words in colour.
std::string painted(const std::string& table) {
  std::string text;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const std::string first = line.substr(0, line.find(' '));
    const Colour colour = first == "ok"     ? Colour::green
                          : first == "warn" ? Colour::yellow
                          : first == "fail" ? Colour::red
                                            : Colour::plain;  // a line that goes on
    text += coloured(colour, first) + line.substr(first.size()) + "\n";
  }
  return text;
}

int run_doctor(const DoctorOptions& options) {
  Findings findings;
  check_host(findings);
  check_features(findings);
  findings.push_back(check_congestion_control());
  for (const auto& interface : check_config(options.config, findings))
    findings.push_back(check_uplink(interface));
  findings.push_back(check_daemon(options.instance->instance));

  bool failed = false;
  nlohmann::json list = nlohmann::json::array();
  Table table({false, false, false});
  for (const auto& finding : findings) {
    failed = failed || finding.verdict == Verdict::fail;
    list.push_back(
        {{"name", finding.name}, {"verdict", verdict_name(finding.verdict)}, {"text", finding.text}});
    table.add({verdict_name(finding.verdict), finding.name, finding.text});
  }
  if (options.instance->json) {
    print_json({{"ok", !failed}, {"findings", list}});
  } else {
    std::printf("%s", painted(table.text()).c_str());
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("doctor", "Check what this host can do, and say what to change");
  const auto options = std::make_shared<DoctorOptions>();
  options->instance = add_instance_options(*command);
  command->add_option("--config", options->config,
                      "Configuration file (default: /etc/gradlane/gradlaned.toml)");
  command->footer(
      "Changes nothing and needs no daemon. Exit status 1 if gradlaned could not work here.\n"
      "Examples:\n  gradlane doctor\n  gradlane doctor --config new.toml --json");
  command->callback([options, &exit_status] { exit_status = run_doctor(*options); });
}

}  // namespace gradlane
