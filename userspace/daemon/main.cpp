// SPDX-License-Identifier: Apache-2.0
// gradlaned: the daemon's command line.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bpf/datapath.hpp"
#include "core/log.hpp"
#include "daemon/daemon.hpp"
#include "daemon/host.hpp"
#include "daemon/lock.hpp"
#include "daemon/names.hpp"
#include "daemon/report.hpp"
#include "daemon/version.hpp"

namespace gradlane {
namespace {

struct Options {
  std::string instance = "default";
  std::string config = "/etc/gradlane/gradlaned.toml";
  bool check = false;
  bool json = false;
};

// Prints the configuration that would hold.
void print_checked(const Config& config, bool as_json) {
  if (as_json) {
    std::printf("%s\n", config_json(config).dump().c_str());
  } else {
    std::printf("%s is valid\n", config.source.c_str());
  }
}

Status run(const Options& options) {
  if (const Status valid = check_instance_name(options.instance); !valid) return valid;
  const auto config = load_config(options.config);
  if (!config) return config.error();
  if (options.check) {
    print_checked(*config, options.json);
    return {};
  }
  start_log("gradlaned", config->log_level);
  if (const Status privileged = check_privileges(); !privileged) return privileged;
  if (const Status described = check_btf(); !described) return described;
  const auto cgroup = find_cgroup2();
  if (!cgroup) return cgroup.error();
  if (const Status mounted = ensure_bpf_file_system(); !mounted) return mounted;
  const auto ready = [] {
    std::puts("ready");
    std::fflush(stdout);
  };
  return run_daemon(*config, {options.instance, run_folder, *cgroup, Datapath::start, ready});
}

int main_of_daemon(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  start_log("gradlaned", "info");
  Options options;
  CLI::App app("The daemon of gradlane: one per host, and per instance where a host has several.",
               "gradlaned");
  app.footer(
      "Examples:\n  gradlaned --check --config /etc/gradlane/gradlaned.toml\n  gradlaned --instance test "
      "--config "
      "test.toml\n\nIt prints the line \"ready\" on standard output once it works, and its log on standard "
      "error.\n"
      "SIGTERM or SIGINT ends it and takes everything out of the kernel. See gradlaned(8).");
  app.add_option("--instance", options.instance, "Name of the instance (default: default)");
  app.add_option("--config", options.config, "Configuration file (default: /etc/gradlane/gradlaned.toml)");
  app.add_flag("--check", options.check, "Check the configuration and exit");
  app.add_flag("--json", options.json,
               "With --check: print the effective configuration, or the error, as JSON");
  app.set_version_flag("--version", version_text);
  CLI11_PARSE(app, argc, argv);
  const Status done = run(options);
  if (done) return 0;
  if (options.check && options.json) {
    std::printf("%s\n", nlohmann::json{{"error", done.error().message}}.dump().c_str());
  } else {
    spdlog::error("{}", done.error().message);
  }
  return 1;
}

}  // namespace
}  // namespace gradlane

int main(int argc, char** argv) { return gradlane::main_of_daemon(argc, argv); }
