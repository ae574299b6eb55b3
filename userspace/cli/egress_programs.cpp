// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_programs.hpp"

#include <bpf/bpf.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <netlink/route/classifier.h>
#include <netlink/socket.h>

#include <array>
#include <memory>

#include "core/fd.hpp"

namespace gradlane {
namespace {

constexpr const char* our_prefix = "gl_";

EgressProgram describe(std::uint32_t id) {
  EgressProgram program{"program " + std::to_string(id), false};
  const Fd fd(bpf_prog_get_fd_by_id(id));
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  if (fd && bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0 && info.name[0] != '\0') {
    program.name = info.name;
    program.ours = program.name.rfind(our_prefix, 0) == 0;
  }
  return program;
}

std::vector<EgressProgram> tcx_programs(unsigned interface) {
  std::array<std::uint32_t, 64> ids{};  // as many as the kernel takes
  struct bpf_prog_query_opts query{};
  query.sz = sizeof query;
  query.prog_ids = ids.data();
  query.prog_cnt = ids.size();
  std::vector<EgressProgram> programs;
  if (bpf_prog_query_opts(static_cast<int>(interface), BPF_TCX_EGRESS, &query) != 0) return programs;
  for (std::uint32_t at = 0; at < query.prog_cnt && at < ids.size(); ++at)
    programs.push_back(describe(ids[at]));
  return programs;
}

std::vector<std::string> clsact_filters(unsigned interface) {
  std::vector<std::string> kinds;
  const std::unique_ptr<nl_sock, decltype(&nl_socket_free)> socket(nl_socket_alloc(), nl_socket_free);
  if (socket == nullptr || nl_connect(socket.get(), NETLINK_ROUTE) != 0) return kinds;
  nl_cache* filters = nullptr;
  const std::uint32_t parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
  if (rtnl_cls_alloc_cache(socket.get(), static_cast<int>(interface), parent, &filters) != 0) return kinds;
  for (nl_object* object = nl_cache_get_first(filters); object != nullptr;
       object = nl_cache_get_next(object)) {
    auto* filter = reinterpret_cast<rtnl_tc*>(object);
    // Every filter is listed once more per priority, without a handle.
    if (rtnl_tc_get_handle(filter) == 0) continue;
    const char* kind = rtnl_tc_get_kind(filter);
    kinds.emplace_back(kind == nullptr ? "?" : kind);
  }
  nl_cache_free(filters);
  return kinds;
}

}  // namespace

Result<EgressPrograms> egress_programs(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) return system_error("find the interface", interface, errno);
  return EgressPrograms{tcx_programs(index), clsact_filters(index)};
}

}  // namespace gradlane
