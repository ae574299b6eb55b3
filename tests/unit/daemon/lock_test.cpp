// SPDX-License-Identifier: Apache-2.0
#include "daemon/lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "temporary_folder.hpp"

namespace gradlane {
namespace {

using std::chrono::milliseconds;

TEST(Lock, OneHolderPerInstance) {
  const TemporaryFolder base;
  const std::string folder = base.path() + "/run";
  EXPECT_EQ(lock_holder(folder, "a"), 0);
  {
    const auto first = InstanceLock::take(folder, "a", milliseconds(0));
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(lock_holder(folder, "a"), getpid());
    const auto second = InstanceLock::take(folder, "a", milliseconds(0));
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("runs already with pid " + std::to_string(getpid())),
              std::string::npos);
    EXPECT_EQ(lock_holder(folder, "a"), getpid()) << "a refused attempt changes nothing";
    EXPECT_TRUE(InstanceLock::take(folder, "b", milliseconds(0))) << "another instance is free";
  }
  EXPECT_EQ(lock_holder(folder, "a"), 0);
  EXPECT_FALSE(std::filesystem::exists(folder)) << "nothing stays behind";
}

TEST(Lock, DeadHolderDoesNotCount) {
  const TemporaryFolder base;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = InstanceLock::take(base.path(), "a", milliseconds(0));
    _exit(lock ? 0 : 1);  // dies without removing the file
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(lock_path(base.path(), "a")));
  EXPECT_EQ(lock_holder(base.path(), "a"), 0);
  EXPECT_TRUE(InstanceLock::take(base.path(), "a", milliseconds(0)));
}

// Many take and drop it at once: never two at the same time, although every one removes the file.
TEST(Lock, HoldersExcludeEachOther) {
  const TemporaryFolder base;
  std::atomic<int> inside{0}, together{0}, turns{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        const auto lock = InstanceLock::take(base.path() + "/run", "a", std::chrono::seconds(60));
        if (!lock) continue;
        if (++inside > 1) ++together;
        ++turns;
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(together, 0);
  EXPECT_EQ(turns, 40);
}

}  // namespace
}  // namespace gradlane
