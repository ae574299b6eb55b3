// SPDX-License-Identifier: Apache-2.0
// What a host must offer before anything can be loaded: privileges, BTF, cgroup v2, the BPF file system. Each
// check fails with the sentence that a person needs.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane {

// Which of CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON the text of /proc/PID/status lacks in its effective set.
// CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, as in the kernel.
std::vector<std::string> missing_capabilities(const std::string& proc_status);
// The same of this process, as a sentence.
Status check_privileges();

// That the kernel describes its types, without which no program can be fitted to it.
Status check_btf();

// The mount point of cgroup v2 in the text of /proc/self/mountinfo: where the whole hierarchy is mounted if
// possible, else the first; empty if there is none.
std::string cgroup2_mount(const std::string& mountinfo);
// The same of this process. We never mount it: where it belongs is the administrator's choice.
Result<std::string> find_cgroup2();

// Whether /sys/fs/bpf is a BPF file system.
bool bpf_file_system_mounted();
// Mounts one there if nothing is and we may, as bpftool does, and logs so.
Status ensure_bpf_file_system();

}  // namespace gradlane
