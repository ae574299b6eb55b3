// SPDX-License-Identifier: Apache-2.0
#include "daemon/protocol.hpp"

#include <gtest/gtest.h>

namespace gradlane {
namespace {

using nlohmann::json;

TEST(Protocol, RequestsSurviveTheirFormat) {
  for (const Request& request :
       {Request{Command::status, "", GL_LANES}, Request{Command::config, "", GL_LANES},
        Request{Command::stop, "", GL_LANES}, Request{Command::job, "a.b-c_1", GL_LANE_BULK}}) {
    const std::string line = format_request(request);
    ASSERT_EQ(line.find('\n'), line.size() - 1);
    const auto parsed = parse_request(std::string_view(line).substr(0, line.size() - 1));
    ASSERT_TRUE(parsed) << line;
    EXPECT_EQ(parsed->command, request.command);
    EXPECT_EQ(parsed->job, request.job);
    EXPECT_EQ(parsed->lane, request.lane);
  }
}

TEST(Protocol, MembersThatAreNotKnownAreIgnored) {
  EXPECT_TRUE(parse_request(R"({"version":1,"command":"status","since":{"a":[1]}})"));
}

TEST(Protocol, WrongRequestsAreRefusedWithASentence) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "no JSON object"},
      {"status", "no JSON object"},
      {"[]", "no JSON object"},
      {"null", "no JSON object"},
      {R"({"version":1,"command":"status"}})", "no JSON object"},
      {"{\"version\":1,\"command\":\"\xff\"}", "no JSON object"},
      {R"({"command":"status"})", "speaks version 1"},
      {R"({"version":2,"command":"status"})", "speaks version 1"},
      {R"({"version":"1","command":"status"})", "speaks version 1"},
      {R"({"version":1.0,"command":"status"})", "speaks version 1"},
      {R"({"version":1})", "unknown command"},
      {R"({"version":1,"command":"halt"})",
       "unknown command \"halt\": this daemon knows status, config, job"},
      {R"({"version":1,"command":7})", "unknown command"},
      {R"({"version":1,"command":"job","lane":"high"})", "name of a job"},
      {R"({"version":1,"command":"job","name":"../up","lane":"high"})", "name of a job"},
      {R"({"version":1,"command":"job","name":"a"})", "urgent, high, normal, bulk"},
      {R"({"version":1,"command":"job","name":"a","lane":1})", "urgent, high, normal, bulk"},
      {std::string(longest_request + 1, ' '), "longer than 64 KiB"},
      {std::string(longest_request, '['), "no JSON object"},
  };
  for (const auto& [line, part] : table) {
    const auto request = parse_request(line);
    ASSERT_FALSE(request) << line.substr(0, 200);
    EXPECT_NE(request.error().message.find(part), std::string::npos) << request.error().message;
  }
}

TEST(Protocol, AnswersSurviveTheirFormat) {
  const json result = {{"a", 1}, {"b", {true, nullptr}}};
  const auto good = parse_answer(format_answer(result));
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, result);
  const auto bad = parse_answer(format_answer(make_error("what to \"do\"\nnow")));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "what to \"do\"\nnow");
  EXPECT_EQ(format_answer(make_error("a\nb")).find('\n'), format_answer(make_error("a\nb")).size() - 1);
  EXPECT_TRUE(parse_answer(format_answer(json{{"name", "\xff\xfe"}}))) << "no UTF-8 is no reason to fail";
}

TEST(Protocol, WhatIsNoAnswerIsAnError) {
  for (const char* line : {"", "{}", R"({"version":1})", R"({"version":2,"ok":true,"result":1})",
                           R"({"version":1,"ok":"yes"})", "{", "[true]"}) {
    EXPECT_FALSE(parse_answer(line)) << line;
  }
}

}  // namespace
}  // namespace gradlane
