// SPDX-License-Identifier: Apache-2.0
// What this kernel can do, asked from its type information, never from its version number.
#pragma once

#include "core/result.hpp"

namespace gradlane {

struct KernelFeatures {
  bool tcx = false;              // tc programs by links (6.6)
  bool struct_ops_link = false;  // congestion controls by links (6.4)
  // Arguments of cong_control: 4 from 6.10 on, 3 before; 0: no congestion control by BPF.
  int cong_control_arguments = 0;
};

// An error where the kernel has no type information (CONFIG_DEBUG_INFO_BTF).
Result<KernelFeatures> probe_kernel();

}  // namespace gradlane
