// SPDX-License-Identifier: Apache-2.0
// Many-to-one traffic for tests and benchmarks: a receiver asks all its senders at once for a block, and
// measures when each block is there. `gl-incast receive --help`, `gl-incast send --help`.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/incast.hpp"

namespace {

// Returns nothing if the text is not a list of positive numbers.
std::vector<std::uint64_t> parse_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (const auto& word : CLI::detail::split(text, ',')) {
    std::uint64_t size = 0;
    if (!CLI::detail::lexical_cast(word, size) || size == 0) return {};
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace gradlane::incast;
  CLI::App app("Many-to-one traffic: a receiver asks its senders for blocks and measures their arrival.",
               "gl-incast");
  app.require_subcommand(1);

  Receiver receiver;
  CLI::App* receive =
      app.add_subcommand("receive", "ask for blocks; one JSON object per batch, then \"done\"");
  receive->add_option("port", receiver.port, "TCP port to listen on")->required();
  receive->add_option("flows", receiver.flows, "connections to wait for")->required();
  std::string sizes;
  receive->add_option("bytes", sizes, "of each block; several, with commas between, take turns")->required();
  receive->add_option("batches", receiver.batches, "blocks to ask of each sender")->required();
  receive->add_option("pause", receiver.pause_ms, "between batches, ms");
  receive->add_option("--pause-after", receiver.pause_after, "pause only after so many batches");
  receive->add_option("--seconds", receiver.seconds, "begin no batch after so many seconds");
  receive->add_option("--tokens", receiver.tokens, "ask at most so many senders at a time");
  receive->add_option("--window-clamp", receiver.window_clamp, "TCP_WINDOW_CLAMP of each connection, bytes");
  receive->add_flag("--hold", receiver.hold, "after \"done\" keep the connections until standard input ends");

  Sender sender;
  CLI::App* send = app.add_subcommand("send", "answer a receiver until it closes");
  send->add_option("address", sender.address, "of the receiver")->required();
  send->add_option("port", sender.port, "of the receiver")->required();
  send->add_option("flows", sender.flows, "connections to make")->required();
  send->add_option("congestion", sender.congestion, "congestion control; empty: the host's");
  send->add_option("priority", sender.priority, "SO_PRIORITY");
  send->add_option("--pacing-rate", sender.pacing_rate, "SO_MAX_PACING_RATE, bytes per second");
  send->add_option("--write-rate", sender.write_rate,
                   "the program writes no faster, bytes per second per flow");

  CLI11_PARSE(app, count, arguments);
  if (!receive->parsed()) return run(sender);
  receiver.bytes = parse_sizes(sizes);
  if (receiver.bytes.empty()) {
    std::fputs("gl-incast: bytes: allowed are whole numbers from 1 on, with commas between\n", stderr);
    return 2;
  }
  return run(receiver);
}
