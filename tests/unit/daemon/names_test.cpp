// SPDX-License-Identifier: Apache-2.0
#include "daemon/names.hpp"

#include <gtest/gtest.h>

namespace gradlane {
namespace {

TEST(Names, OrdinaryNamesAreTaken) {
  for (const std::string name : {"a", "7", "resnet-50.run_3", "A.B", "x--", "1.."}) {
    EXPECT_TRUE(check_job_name(name)) << name;
    EXPECT_TRUE(check_instance_name(name)) << name;
  }
  EXPECT_TRUE(check_job_name(std::string(64, 'j')));
}

TEST(Names, WhatCouldLeaveTheFolderOrHideInItIsRefused) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("a/b"),
        std::string("/a"), std::string("a/"), std::string(".hidden"), std::string("-rf"), std::string("_a"),
        std::string("a b"), std::string("a\n"), std::string("a\0b", 3), std::string("\xc3\xa9"),
        std::string(65, 'j')}) {
    EXPECT_FALSE(check_job_name(name)) << name;
    EXPECT_FALSE(check_instance_name(name)) << name;
  }
}

// Every byte, alone and inside: allowed exactly if it is one of the listed.
TEST(Names, AllowedBytesAreExactlyTheListed) {
  const std::string first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    EXPECT_EQ(static_cast<bool>(check_job_name(std::string(1, c))), first.find(c) != std::string::npos)
        << byte;
    EXPECT_EQ(static_cast<bool>(check_job_name(std::string("a") + c)),
              (first + "._-").find(c) != std::string::npos)
        << byte;
  }
}

TEST(Names, FoldersOfOthersAreNoInstance) {
  for (const char* name : {"kernel", "gradlaned.service", "x.scope", "x.slice"}) {
    EXPECT_FALSE(check_instance_name(name)) << name;
    EXPECT_TRUE(check_job_name(name)) << name;
  }
}

}  // namespace
}  // namespace gradlane
