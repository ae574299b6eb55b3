// SPDX-License-Identifier: Apache-2.0
#include "bpf/attach_tc.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "bpf/pins.hpp"
#include "core/fd.hpp"

namespace gradlane {

namespace {

// Away from 1, which everybody takes first.
constexpr unsigned kFilterPriority = 29741;
constexpr unsigned kFilterHandle = 0x674c;

bpf_tc_hook egress_hook(int index) {
  bpf_tc_hook hook{};
  hook.sz = sizeof(hook);
  hook.ifindex = index;
  hook.attach_point = BPF_TC_EGRESS;
  return hook;
}

bpf_tc_opts filter_options() {
  bpf_tc_opts options{};
  options.sz = sizeof(options);
  options.handle = kFilterHandle;
  options.priority = kFilterPriority;
  return options;
}

Status attach_filter(const std::string& interface, int index, const bpf_program* program) {
  bpf_tc_hook hook = egress_hook(index);
  if (const int error = bpf_tc_hook_create(&hook); error != 0 && error != -EEXIST) {
    return Error{"cannot add clsact to " + interface + ": " + std::strerror(-error) +
                     "; an ingress qdisc in its place has to be replaced by clsact",
                 -error};
  }
  bpf_tc_opts options = filter_options();
  options.prog_fd = bpf_program__fd(program);
  options.flags = BPF_TC_F_REPLACE;
  if (const int error = bpf_tc_attach(&hook, &options)) {
    return system_error("attach the marker as a filter to", interface, error);
  }
  return {};
}

}  // namespace

Status attach_egress(const std::string& interface, const bpf_program* program, const std::string& folder,
                     bool tcx) {
  const auto index = static_cast<int>(if_nametoindex(interface.c_str()));
  if (index == 0) {
    return make_error("there is no interface " + interface + ": `ip link` lists those that exist");
  }
  if (!tcx) return attach_filter(interface, index, program);
  return attach_pinned(
      folder + "/link_" + interface, program,
      [&] { return bpf_program__attach_tcx(program, index, nullptr); }, "egress of " + interface);
}

void detach_egress_filter(const std::string& interface, unsigned program_id) {
  const auto index = static_cast<int>(if_nametoindex(interface.c_str()));
  if (index == 0) return;
  bpf_tc_hook hook = egress_hook(index);
  bpf_tc_opts options = filter_options();
  if (bpf_tc_query(&hook, &options) != 0 || options.prog_id != program_id) return;
  bpf_tc_opts ours = filter_options();
  bpf_tc_detach(&hook, &ours);
}

unsigned long long interface_speed(const std::string& interface) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  // Not from /sys/class/net: that shows the network namespace in which it was mounted.
  if (!socket || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return 0;
  const unsigned speed = ethtool_cmd_speed(&command);
  return speed == static_cast<unsigned>(SPEED_UNKNOWN) ? 0 : speed * 1000000ULL;
}

}  // namespace gradlane
