// SPDX-License-Identifier: Apache-2.0
#include "bpf/probe.hpp"

#include <bpf/btf.h>

#include <cstring>
#include <memory>
#include <string>

namespace gradlane {

namespace {

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};
using Types = std::unique_ptr<btf, FreeBtf>;

bool has_struct(const btf* types, const char* name) {
  return btf__find_by_name_kind(types, name, BTF_KIND_STRUCT) > 0;
}

bool has_enumerator(const btf* types, const char* enumeration, const char* name) {
  const int id = btf__find_by_name_kind(types, enumeration, BTF_KIND_ENUM);
  if (id < 0) return false;
  const btf_type* type = btf__type_by_id(types, static_cast<__u32>(id));
  const struct btf_enum* values = btf_enum(type);
  for (int i = 0; i < btf_vlen(type); i++) {
    if (std::strcmp(btf__name_by_offset(types, values[i].name_off), name) == 0) return true;
  }
  return false;
}

// Number of arguments of a function pointer in a struct; 0 where there is none.
int member_arguments(const btf* types, const char* structure, const char* member) {
  const int id = btf__find_by_name_kind(types, structure, BTF_KIND_STRUCT);
  if (id < 0) return 0;
  const btf_type* type = btf__type_by_id(types, static_cast<__u32>(id));
  const struct btf_member* members = btf_members(type);
  for (int i = 0; i < btf_vlen(type); i++) {
    if (std::strcmp(btf__name_by_offset(types, members[i].name_off), member) != 0) continue;
    const btf_type* pointer = btf__type_by_id(types, members[i].type);
    if (!btf_is_ptr(pointer)) return 0;
    const btf_type* function = btf__type_by_id(types, pointer->type);
    return btf_is_func_proto(function) ? btf_vlen(function) : 0;
  }
  return 0;
}

}  // namespace

Result<KernelFeatures> probe_kernel() {
  const Types types{btf__load_vmlinux_btf()};
  if (!types) {
    return Error{
        "this kernel has no type information at /sys/kernel/btf/vmlinux: use a kernel built with "
        "CONFIG_DEBUG_INFO_BTF=y, as Debian's are",
        errno};
  }
  KernelFeatures features;
  features.tcx = has_enumerator(types.get(), "bpf_attach_type", "BPF_TCX_EGRESS");
  features.struct_ops_link = has_struct(types.get(), "bpf_struct_ops_link");
  // The kernel's stub of a congestion control by BPF.
  if (has_struct(types.get(), "bpf_struct_ops_tcp_congestion_ops")) {
    features.cong_control_arguments = member_arguments(types.get(), "tcp_congestion_ops", "cong_control");
  }
  return features;
}

}  // namespace gradlane
