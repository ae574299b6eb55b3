// SPDX-License-Identifier: Apache-2.0
#include "lab/capture.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "lab/commands/commands.hpp"

namespace gradlane::lab {
namespace {

using nlohmann::json;

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

std::string address(std::uint8_t ip_version, const std::array<std::uint8_t, 16>& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(ip_version == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

std::string protocol_name(std::uint8_t protocol) {
  switch (protocol) {
    case 1:
      return "icmp";
    case 6:
      return "tcp";
    case 17:
      return "udp";
    case 58:
      return "icmpv6";
    default:
      return std::to_string(protocol);
  }
}

const char* direction(const FlowKey& flow) { return flow.from_end ? "from" : "to"; }

json as_json(const FlowCount& count) {
  const FlowKey& flow = count.flow;
  return {{"direction", direction(flow)},
          {"ip_version", flow.ip_version},
          {"protocol", protocol_name(flow.protocol)},
          {"source", address(flow.ip_version, flow.source)},
          {"source_port", flow.source_port},
          {"destination", address(flow.ip_version, flow.destination)},
          {"destination_port", flow.destination_port},
          {"dscp", count.dscp},
          {"ecn", count.ecn},
          {"packets", count.packets},
          {"wire_bytes", count.wire_bytes},
          {"payload_bytes", count.payload_bytes},
          {"retransmitted_bytes", count.retransmitted_bytes},
          {"first_s", seconds(count.first_ns)},
          {"last_s", seconds(count.last_ns)}};
}

json as_json(const Capture& capture) {
  json periods = json::array();
  for (const auto& period : capture.periods) {
    json flows = json::array();
    for (const auto& count : period.counts) flows.push_back(as_json(count));
    periods.push_back({{"name", period.name},
                       {"start_s", seconds(period.start_ns)},
                       {"end_s", seconds(period.end_ns)},
                       {"other_packets", period.other_packets},
                       {"other_bytes", period.other_bytes},
                       {"flows", std::move(flows)}});
  }
  return {{"link", capture.link},
          {"end", capture.end},
          {"dropped_packets", capture.dropped_packets},
          {"periods", std::move(periods)}};
}

// One line per period, direction and DSCP.
void print_table(const Capture& capture) {
  std::printf("%-12s %-4s %4s %9s %13s %13s %13s\n", "period", "", "dscp", "packets", "wire bytes", "payload",
              "retransmitted");
  for (const auto& period : capture.periods) {
    std::map<std::pair<bool, int>, FlowCount> sums;
    for (const auto& count : period.counts) {
      FlowCount& sum = sums[{count.flow.from_end, count.dscp}];
      sum.packets += count.packets;
      sum.wire_bytes += count.wire_bytes;
      sum.payload_bytes += count.payload_bytes;
      sum.retransmitted_bytes += count.retransmitted_bytes;
    }
    for (const auto& [key, sum] : sums) {
      std::printf("%-12s %-4s %4d %9llu %13llu %13llu %13llu\n", period.name.c_str(),
                  key.first ? "from" : "to", key.second, static_cast<unsigned long long>(sum.packets),
                  static_cast<unsigned long long>(sum.wire_bytes),
                  static_cast<unsigned long long>(sum.payload_bytes),
                  static_cast<unsigned long long>(sum.retransmitted_bytes));
    }
  }
  std::printf("to and from %s; the capture missed %llu packets\n", capture.end.c_str(),
              static_cast<unsigned long long>(capture.dropped_packets));
}

}  // namespace

void add_capture(CLI::App& app) {
  auto* command = app.add_subcommand("capture", "Count what passes a link, at the switch");
  struct Options {
    CaptureOptions capture;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  add_name_option(*command, options->capture.lab);
  command->add_option("LINK", options->capture.link, "Its name: the host's, or A-B between switches")
      ->required();
  command->add_option("--seconds", options->capture.seconds, "How long; without it until SIGINT or SIGTERM")
      ->check(CLI::PositiveNumber);
  command->add_flag("--until-stdin-closes", options->capture.until_stdin_closes,
                    "End when standard input does; a line `mark NAME` there begins a period");
  command->add_flag("--json", options->json, "Every flow, as JSON");
  command->callback([options] {
    const auto capture = capture_link(options->capture);
    if (!capture) finish(capture.error());
    if (options->json) {
      std::printf("%s\n", as_json(*capture).dump().c_str());
    } else {
      print_table(*capture);
    }
  });
}

}  // namespace gradlane::lab
