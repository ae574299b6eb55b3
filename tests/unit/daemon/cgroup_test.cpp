// SPDX-License-Identifier: Apache-2.0
// In an ordinary folder; what only the kernel's cgroup folders do is for the namespace tests.
#include "daemon/cgroup.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.hpp"

namespace gradlane {
namespace {

namespace fs = std::filesystem;

TEST(Cgroup, MakeAndRemoveLeaveNothing) {
  const TemporaryFolder mount;
  const InstanceCgroup cgroup(mount.path(), "one");
  EXPECT_FALSE(cgroup.exists());
  for (int round = 0; round < 2; ++round) ASSERT_TRUE(cgroup.make()) << "again is no error";
  EXPECT_EQ(cgroup.path(), mount.path() + "/gradlane.slice/one");
  EXPECT_TRUE(cgroup.exists());
  for (const char* job : {"b", "a", "a"}) ASSERT_TRUE(cgroup.make_job(job));
  fs::create_directories(cgroup.job_path("a") + "/below/that");
  ASSERT_EQ(cgroup.jobs().size(), 2U);
  EXPECT_EQ(cgroup.jobs()[0].name, "a");
  EXPECT_EQ(cgroup.jobs()[0].cgroup_id, *cgroup.job_id("a"));
  EXPECT_TRUE(cgroup.remove().empty());
  EXPECT_TRUE(fs::is_empty(mount.path()));
  EXPECT_TRUE(cgroup.remove().empty()) << "nothing there is no error";
}

TEST(Cgroup, OtherInstancesAndBusyJobsStay) {
  const TemporaryFolder mount;
  const InstanceCgroup one(mount.path(), "one"), two(mount.path(), "two");
  ASSERT_TRUE(one.make());
  ASSERT_TRUE(two.make());
  fs::create_directory(mount.path() + "/gradlane.slice/gradlaned.service");
  EXPECT_EQ(instances_with_cgroup(mount.path()), (std::vector<std::string>{"one", "two"}))
      << "systemd's is none";
  ASSERT_TRUE(one.make_job("busy"));
  ASSERT_TRUE(one.make_job("idle"));
  std::ofstream(one.job_path("busy") + "/cgroup.procs") << "12\n34\n";  // rmdir refuses, as with processes
  const auto left = one.remove();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].name, "busy");
  EXPECT_EQ(left[0].processes, 2U);
  EXPECT_FALSE(fs::exists(one.job_path("idle")));
  EXPECT_TRUE(fs::exists(one.job_path("busy")));
  EXPECT_TRUE(two.remove().empty());
  EXPECT_EQ(instances_with_cgroup(mount.path()), std::vector<std::string>{"one"});
}

TEST(Cgroup, FileInTheWayIsOneSentence) {
  const TemporaryFolder mount;
  const InstanceCgroup cgroup(mount.path(), "one");
  ASSERT_TRUE(cgroup.make());
  std::ofstream(cgroup.job_path("cpu.stat")) << "x";
  const auto made = cgroup.make_job("cpu.stat");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("choose another"), std::string::npos);
  EXPECT_FALSE(cgroup.job_id("cpu.stat"));
  EXPECT_FALSE(cgroup.job_id("none"));
}

}  // namespace
}  // namespace gradlane
