// SPDX-License-Identifier: Apache-2.0
// gradlane-train: a parameter server, its workers, and the same training in one process.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cli/print.hpp"
#include "cli/train_task.hpp"
#include "core/log.hpp"
#include "sync/local.hpp"
#include "sync/poller.hpp"
#include "sync/server.hpp"
#include "sync/worker.hpp"

namespace gradlane::train {

namespace {

constexpr const char* kExamples = R"(
Examples:
  A training on one machine, with two workers:
    gradlane-train server --listen 127.0.0.1:7000 --workers 2 --schedule pwfbp --lanes 4 --steps 200 &
    gradlane-train worker --connect 127.0.0.1:7000 --rank 0 &
    gradlane-train worker --connect 127.0.0.1:7000 --rank 1
  The same without a network; it prints the same losses:
    gradlane-train local --workers 2 --steps 200
  Over IPv6, steered by another program:
    gradlane-train server --listen '[::]:7000' --workers 8 --schedule wfbp --commands --json
  which then reads these lines from standard input: run N, check, evaluate, finish.)";

// Exit codes: 0 well, 1 failed, 2 a wrong command line, 128 + N ended by signal N.
constexpr int kFailed = 1;
constexpr int kWrongUse = 2;
constexpr int kSignalBase = 128;

struct Options {
  TrainingSetup setup;
  std::string address;
  std::string data = kDefaultDataFolder;
  std::string backend = "auto";
  std::string byte_log;
  std::uint32_t rank = 0;
  std::uint32_t steps = 100;
  std::uint32_t wait = 60;
  bool commands = false;
  bool untagged_low_lanes = false;
  bool json = false;
};

void add_data_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "folder with the data set (IDX files, also gzip)")
      ->capture_default_str();
  app.add_option("--backend", options.backend, "auto, cpu or cuda")->capture_default_str();
}

void add_training_options(CLI::App& app, Options& options) {
  TrainingSetup& setup = options.setup;
  app.add_option("--workers", setup.workers, "number of workers")->required();
  app.add_option("--steps", options.steps, "iterations, without --commands")->capture_default_str();
  app.add_option("--batch", setup.batch, "samples per iteration, over all workers")->capture_default_str();
  app.add_option("--learning-rate", setup.learning_rate)->capture_default_str();
  app.add_option("--momentum", setup.momentum)->capture_default_str();
  app.add_option("--seed", setup.seed, "of initial weights and batches")->capture_default_str();
  app.add_option("--spec", setup.spec, "the layers, as in \"" + std::string(kDefaultNetwork) + "\"");
  app.add_option("--slice", setup.slice_bytes, "most bytes of a slice")->capture_default_str();
  app.add_flag("--json", options.json, "JSON on standard output, one object per line");
}

void add_server_options(CLI::App& app, Options& options) {
  TrainingSetup& setup = options.setup;
  app.add_option("--listen", options.address, "ADDRESS:PORT or [ADDRESS]:PORT")->required();
  app.add_option(
         "--schedule", setup.schedule,
         "serial: gradients after the whole backward pass; wfbp: layer by layer, first come first served; "
         "pwfbp: what the next forward pass needs first goes first")
      ->required();
  app.add_option("--lanes", setup.lanes, "connections per worker: 1, or 4 tagged by urgency")
      ->capture_default_str();
  app.add_flag("--untagged-low-lanes", options.untagged_low_lanes,
               "tag only urgent and high: for hosts without gradlaned, whose queues serve low tags last");
  app.add_option("--congestion", setup.congestion,
                 "TCP congestion control of both sides (default: the system's)");
  app.add_option(
         "--device-ms", setup.device_ms,
         "pace forward and backward like a device that needs so many milliseconds per iteration; 0: off")
      ->capture_default_str();
  app.add_option("--check-every", setup.check_every, "steps between two checks of all weights; 0: none")
      ->capture_default_str();
  app.add_flag("--commands", options.commands,
               "read commands from standard input: run N, evaluate, check, finish");
  app.add_option("--byte-log", options.byte_log, "file that gets one JSON object per connection");
  app.add_option("--wait", options.wait, "seconds to wait for the workers")->capture_default_str();
}

// What is done without --commands.
std::deque<Command> plain_commands(std::uint32_t steps) {
  std::deque<Command> commands;
  if (steps > 0) commands.push_back({.kind = Command::Kind::run, .steps = steps});
  commands.push_back({.kind = Command::Kind::check});
  commands.push_back({.kind = Command::Kind::evaluate});
  commands.push_back({.kind = Command::Kind::finish});
  return commands;
}

Result<Ending> server(Options& options, int signal_fd) {
  if (options.untagged_low_lanes) options.setup.tags[GL_LANE_NORMAL] = options.setup.tags[GL_LANE_BULK] = 0;
  if (Status status = check_setup(options.setup); !status) return status.error();
  const auto listen = parse_address(options.address);
  if (!listen) return listen.error();
  auto test = TestTask::create(options.setup, options.data, options.backend);
  if (!test) return test.error();
  Network& network = test->network();
  const auto printer = make_printer(options.json);
  return run_server({.listen = *listen,
                     .setup = options.setup,
                     .commands = options.commands ? std::deque<Command>{} : plain_commands(options.steps),
                     .command_fd = options.commands ? STDIN_FILENO : -1,
                     .byte_log = options.byte_log,
                     .wait = std::chrono::seconds(options.wait)},
                    {.model = network,
                     .update = make_update(options.setup),
                     .evaluate = [&] { return test->evaluate(network); }},
                    *printer, signal_fd);
}

Result<Ending> worker(const Options& options, int signal_fd) {
  const auto address = parse_address(options.address);
  if (!address) return address.error();
  const MakeTask make_task = [&options](const TrainingSetup& setup) {
    return make_train_task(setup, options.data, options.backend);
  };
  return run_worker({.server = *address, .rank = options.rank, .byte_log = options.byte_log}, make_task,
                    signal_fd);
}

Result<Ending> local(const Options& options, int signal_fd) {
  if (Status status = check_setup(options.setup); !status) return status.error();
  auto task = make_train_task(options.setup, options.data, options.backend);
  if (!task) return task.error();
  auto test = TestTask::create(options.setup, options.data, options.backend);
  if (!test) return test.error();
  const auto printer = make_printer(options.json);
  return run_local(
      options.setup, **task, make_update(options.setup), [&] { return test->evaluate((*task)->model()); },
      plain_commands(options.steps), *printer, signal_fd);
}

int run(int count, char** arguments) {
  CLI::App app("Trains a network on many hosts over TCP, with a parameter server.", "gradlane-train");
  app.footer(kExamples);
  app.set_version_flag("--version", GRADLANE_VERSION);
  app.require_subcommand(1);
  Options options;
  CLI::App* const server_app = app.add_subcommand("server", "keep the parameters and steer the workers");
  add_server_options(*server_app, options);
  add_training_options(*server_app, options);
  add_data_options(*server_app, options);
  CLI::App* const worker_app = app.add_subcommand("worker", "compute gradients for a server");
  worker_app->add_option("--connect", options.address, "the server's ADDRESS:PORT or [ADDRESS]:PORT")
      ->required();
  worker_app->add_option("--rank", options.rank, "which worker this is, from 0 on")->required();
  worker_app->add_option("--byte-log", options.byte_log, "file that gets one JSON object per connection");
  add_data_options(*worker_app, options);
  CLI::App* const local_app = app.add_subcommand("local", "the same training in one process, for comparison");
  add_training_options(*local_app, options);
  add_data_options(*local_app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUse;
  }
  start_log("gradlane-train", "info");
  const auto signals = catch_signals();
  Result<Ending> ending = !signals      ? Result<Ending>(signals.error())
                          : *server_app ? server(options, signals->get())
                          : *worker_app ? worker(options, signals->get())
                                        : local(options, signals->get());
  if (!ending) {
    spdlog::error("{}", ending.error().message);
    return kFailed;
  }
  return ending->signal == 0 ? 0 : kSignalBase + ending->signal;
}

}  // namespace

}  // namespace gradlane::train

int main(int count, char** arguments) { return gradlane::train::run(count, arguments); }
