// SPDX-License-Identifier: Apache-2.0
#include "daemon/host.hpp"

#include <linux/capability.h>
#include <linux/magic.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>

#include "core/files.hpp"

namespace gradlane {
namespace {

constexpr const char* btf_file = "/sys/kernel/btf/vmlinux";
constexpr const char* bpf_folder = "/sys/fs/bpf";

// mountinfo writes blanks and backslashes of paths as three octal digits.
std::string unescape(const std::string& field) {
  std::string text;
  for (std::size_t at = 0; at < field.size(); ++at) {
    if (field[at] == '\\' && at + 3 < field.size()) {
      text += static_cast<char>(std::strtol(field.substr(at + 1, 3).c_str(), nullptr, 8));
      at += 3;
    } else {
      text += field[at];
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> missing_capabilities(const std::string& proc_status) {
  std::uint64_t effective = 0;
  std::istringstream lines(proc_status);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("CapEff:", 0) == 0) effective = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  const auto has = [&](int capability) { return ((effective >> capability) & 1) != 0; };
  std::vector<std::string> missing;
  if (!has(CAP_BPF) && !has(CAP_SYS_ADMIN)) missing.emplace_back("CAP_BPF");
  if (!has(CAP_NET_ADMIN)) missing.emplace_back("CAP_NET_ADMIN");
  if (!has(CAP_PERFMON) && !has(CAP_SYS_ADMIN)) missing.emplace_back("CAP_PERFMON");
  return missing;
}

Status check_privileges() {
  const auto status = read_file("/proc/self/status");
  if (!status) return status.error();
  std::string names;
  for (const auto& name : missing_capabilities(*status)) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return {};
  return make_error(
      "this process lacks " + names +
      ": run it as root, or give it CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON as the systemd unit does");
}

Status check_btf() {
  if (access(btf_file, R_OK) == 0) return {};
  return make_error(std::string("the kernel does not describe its types (no readable ") + btf_file +
                    "): use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as Debian's are");
}

std::string cgroup2_mount(const std::string& mountinfo) {
  std::string first;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    // "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [OPTIONAL...] - TYPE SOURCE OPTIONS"
    std::istringstream fields(line);
    std::string id, parent, device, root, point, word, type;
    fields >> id >> parent >> device >> root >> point;
    while (fields >> word && word != "-") {
    }
    fields >> type;
    if (type != "cgroup2") continue;
    if (root == "/") return unescape(point);
    if (first.empty()) first = unescape(point);
  }
  return first;
}

Result<std::string> find_cgroup2() {
  const auto mountinfo = read_file("/proc/self/mountinfo");
  if (!mountinfo) return mountinfo.error();
  const std::string mount = cgroup2_mount(*mountinfo);
  if (mount.empty()) {
    return make_error(
        "cgroup v2 is not mounted, and jobs live in its folders: boot with systemd, or mount it with "
        "mount -t cgroup2 none /sys/fs/cgroup");
  }
  return mount;
}

bool bpf_file_system_mounted() {
  struct statfs state{};
  return statfs(bpf_folder, &state) == 0 && static_cast<std::uint64_t>(state.f_type) == BPF_FS_MAGIC;
}

Status ensure_bpf_file_system() {
  if (bpf_file_system_mounted()) return {};
  if (mount("bpf", bpf_folder, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") != 0) {
    Error error = system_error("mount the BPF file system at", bpf_folder, errno);
    error.message += std::string("; mount it as root with mount -t bpf bpf ") + bpf_folder;
    return error;
  }
  spdlog::info("mounted the BPF file system at {}", bpf_folder);
  return {};
}

}  // namespace gradlane
