// SPDX-License-Identifier: Apache-2.0
#include "lab/port.hpp"

#include <arpa/inet.h>
#include <gl_lab_port.skel.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "bpf/skeleton.hpp"
#include "core/fd.hpp"
#include "lab/netns.hpp"
#include "policy/config.hpp"

namespace gradlane::lab {
namespace {

using Program = Skeleton<gl_lab_port_bpf>;

Result<Program> load_program(const PortRules& rules) {
  auto program = Program::open("gl_lab_port");
  if (!program) return program.error();
  auto& settings = *(*program)->rodata;
  settings.htb_major = htb_major;
  settings.first_class = first_lane_class;
  settings.first_queue_major = first_queue_major;
  settings.lanes = rules.lanes;
  const auto dscp = LanesConfig{}.dscp;
  std::copy(dscp.begin(), dscp.end(), settings.lane_dscp);
  settings.limit_bytes = rules.limit_bytes;
  settings.active_ns = rules.active_ns;
  settings.ecn_threshold_bytes = rules.ecn_threshold_bytes;
  settings.drop_all = rules.drop_all;
  if (Status loaded = program->load(); !loaded) return loaded.error();
  return program;
}

struct FreeSocket {
  void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};
struct FreeMessage {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};

// Makes the program the classifier of the port's HTB qdisc. libbpf's bpf_tc_attach() cannot set the filter's
// class, whose upper half (the qdisc's own) the kernel adds to what the program says.
Status attach(const Port& port, int program) {
  const std::string what = port.interface + " of " + port.node;
  const unsigned index = if_nametoindex(port.interface.c_str());
  if (index == 0) return system_error("find the interface", what, errno);
  const std::unique_ptr<nl_sock, FreeSocket> socket(nl_socket_alloc());
  std::unique_ptr<nl_msg, FreeMessage> message(
      nlmsg_alloc_simple(RTM_NEWTFILTER, NLM_F_REQUEST | NLM_F_CREATE));
  if (!socket || !message) return system_error("ask for", "memory", ENOMEM);
  tcmsg head{};
  head.tcm_ifindex = static_cast<int>(index);
  head.tcm_parent = htb_major << 16;
  head.tcm_handle = 1;
  head.tcm_info = TC_H_MAKE(1U << 16, htons(ETH_P_ALL));
  int error = nlmsg_append(message.get(), &head, sizeof(head), NLMSG_ALIGNTO);
  if (error == 0) error = nla_put_string(message.get(), TCA_KIND, "bpf");
  nlattr* options = nla_nest_start(message.get(), TCA_OPTIONS);
  if (error == 0) error = nla_put_u32(message.get(), TCA_BPF_FD, static_cast<std::uint32_t>(program));
  if (error == 0) error = nla_put_string(message.get(), TCA_BPF_NAME, "gl_lab_port");
  if (error == 0) error = nla_put_u32(message.get(), TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
  if (error == 0) error = nla_put_u32(message.get(), TCA_BPF_CLASSID, htb_major << 16);
  if (error == 0 && options != nullptr) nla_nest_end(message.get(), options);
  if (error == 0) error = nl_connect(socket.get(), NETLINK_ROUTE);
  // Takes the message over and waits for the kernel's answer.
  if (error == 0) error = nl_send_sync(socket.get(), message.release());
  if (error < 0) {
    return make_error("cannot attach the lab's BPF program to " + what + ": " + nl_geterror(error));
  }
  return {};
}

Result<Fd> any_socket() {
  Fd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd) return system_error("open", "a socket", errno);
  return socket_fd;
}

ifreq request_for(const Port& port) {
  ifreq request{};
  port.interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

}  // namespace

Status attach_port_programs(const std::vector<Port>& ports) {
  for (const auto& port : ports) {
    const auto program = load_program(port.rules);
    if (!program) return program.error();
    const int descriptor = bpf_program__fd((*program)->progs.gl_lab_port);
    if (Status done = in_namespace(port.name_space, [&] { return attach(port, descriptor); }); !done)
      return done;
  }
  return {};
}

Status apply_offload(const Port& port) {
  if (port.offload) return {};
  return in_namespace(port.name_space, [&]() -> Status {
    const auto socket_fd = any_socket();
    if (!socket_fd) return socket_fd.error();
    for (const unsigned command : {ETHTOOL_STSO, ETHTOOL_SGSO}) {
      ethtool_value value{command, 0};
      ifreq request = request_for(port);
      request.ifr_data = reinterpret_cast<char*>(&value);
      if (ioctl(socket_fd->get(), SIOCETHTOOL, &request) != 0) {
        return system_error("switch the offloads off of", port.interface + " of " + port.node, errno);
      }
    }
    return {};
  });
}

Status set_interface(const Port& port, bool up) {
  return in_namespace(port.name_space, [&]() -> Status {
    const auto socket_fd = any_socket();
    if (!socket_fd) return socket_fd.error();
    ifreq request = request_for(port);
    int failed = ioctl(socket_fd->get(), SIOCGIFFLAGS, &request);
    if (failed == 0) {
      const int flags = request.ifr_flags;
      request.ifr_flags = static_cast<short>(up ? flags | IFF_UP : flags & ~IFF_UP);
      failed = ioctl(socket_fd->get(), SIOCSIFFLAGS, &request);
    }
    if (failed != 0) return system_error("switch", port.interface + " of " + port.node, errno);
    return {};
  });
}

bool has_carrier(const Port& port) {
  return static_cast<bool>(in_namespace(port.name_space, [&]() -> Status {
    const auto socket_fd = any_socket();
    if (!socket_fd) return socket_fd.error();
    ifreq request = request_for(port);
    if (ioctl(socket_fd->get(), SIOCGIFFLAGS, &request) != 0)
      return system_error("see", port.interface, errno);
    constexpr int both = IFF_UP | IFF_RUNNING;
    if ((request.ifr_flags & both) != both) return make_error(port.interface + " is down");
    return {};
  }));
}

Status wait_for_carrier(const std::vector<Port>& ports) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const auto& port : ports) {
    while (!has_carrier(port)) {
      if (std::chrono::steady_clock::now() > deadline) {
        return make_error(port.interface + " of " + port.node + " has no carrier after 10 s");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return {};
}

}  // namespace gradlane::lab
