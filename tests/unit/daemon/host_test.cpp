// SPDX-License-Identifier: Apache-2.0
#include "daemon/host.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace gradlane {
namespace {

std::string status_with(std::initializer_list<int> capabilities) {
  unsigned long long set = 0;
  for (const int capability : capabilities) set |= 1ULL << capability;
  char text[128];
  std::snprintf(text, sizeof text, "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t%016llx\nCapBnd:\t0\n",
                set);
  return text;
}

TEST(Host, MissingCapabilitiesAreNamed) {
  constexpr int net_admin = 12, sys_admin = 21, perfmon = 38, bpf = 39;
  using Names = std::vector<std::string>;
  EXPECT_EQ(missing_capabilities(status_with({net_admin, perfmon, bpf})), Names{});
  EXPECT_EQ(missing_capabilities(status_with({net_admin, sys_admin})), Names{});
  EXPECT_EQ(missing_capabilities(status_with({net_admin, perfmon})), Names{"CAP_BPF"});
  EXPECT_EQ(missing_capabilities(status_with({bpf, perfmon})), Names{"CAP_NET_ADMIN"});
  EXPECT_EQ(missing_capabilities(status_with({net_admin, bpf})), Names{"CAP_PERFMON"});
  EXPECT_EQ(missing_capabilities(status_with({sys_admin})), Names{"CAP_NET_ADMIN"});
  EXPECT_EQ(missing_capabilities("").size(), 3U) << "what cannot be read is not there";
}

TEST(Host, CgroupV2IsFoundWhereverItIsMounted) {
  const std::string v1 = "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n";
  EXPECT_EQ(cgroup2_mount(""), "");
  EXPECT_EQ(cgroup2_mount(v1), "") << "v1 is not v2";
  EXPECT_EQ(cgroup2_mount(v1 + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"),
            "/sys/fs/cgroup/unified");
  EXPECT_EQ(cgroup2_mount(
                "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate\n"),
            "/sys/fs/cgroup")
      << "with optional fields";
  EXPECT_EQ(
      cgroup2_mount(
          "30 24 0:26 /a/b /mnt/part rw - cgroup2 none rw\n31 24 0:26 / /mnt/whole rw - cgroup2 none rw\n"),
      "/mnt/whole")
      << "the whole hierarchy is better than a part";
  EXPECT_EQ(cgroup2_mount("30 24 0:26 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n"), "/mnt/a b\\c");
  EXPECT_EQ(cgroup2_mount("30 24 0:26 / /mnt/x rw"), "") << "cut short";
}

}  // namespace
}  // namespace gradlane
