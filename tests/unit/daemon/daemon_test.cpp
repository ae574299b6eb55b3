// SPDX-License-Identifier: Apache-2.0
// The daemon's life over a data path that only remembers what it was told, in ordinary folders.
#include "daemon/daemon.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <thread>

#include "daemon/cgroup.hpp"
#include "daemon/client.hpp"
#include "daemon/lock.hpp"
#include "temporary_folder.hpp"

namespace gradlane {
namespace {

// What the data path was told, as seen by the test.
struct Told {
  std::vector<std::pair<std::uint64_t, gl_lane>> lanes;
  int stopped = 0;
};

class FakeDatapath : public Datapath {
 public:
  FakeDatapath(Told& told, Status stop) : told_(told), stop_(std::move(stop)) {}
  std::vector<FeatureState> features() const override {
    return {{"marker", FeatureLevel::fallback, "a reason"}};
  }
  Result<std::vector<NamedCount>> counts() const override {
    return std::vector<NamedCount>{{"sockets", "", 7}};
  }
  Result<std::array<LaneState, GL_LANES>> lanes() const override { return std::array<LaneState, GL_LANES>{}; }
  Status set_job_lane(std::uint64_t cgroup_id, gl_lane lane) override {
    told_.lanes.emplace_back(cgroup_id, lane);
    return {};
  }
  Status forget_job_lane(std::uint64_t) override { return {}; }
  Status stop() override {
    ++told_.stopped;
    return stop_;
  }

 private:
  Told& told_;
  Status stop_;
};

class DaemonLife : public testing::Test {
 protected:
  DaemonLife() {
    config_.link.interfaces = {"eth0"};
    options_.folder = base_.path() + "/run";
    options_.cgroup_mount = base_.path() + "/cgroup";
    std::filesystem::create_directory(options_.cgroup_mount);
    options_.start_datapath = [this](const Config&, const std::string&, const std::string& cgroup) {
      cgroup_existed_ = std::filesystem::is_directory(cgroup);
      return Result<std::unique_ptr<Datapath>>(std::make_unique<FakeDatapath>(told_, stop_));
    };
    options_.ready = [this] { tell_ready(); };
  }

  std::string socket() const { return socket_path(options_.folder, options_.instance); }
  bool nothing_left() const {
    return !std::filesystem::exists(options_.folder) && std::filesystem::is_empty(options_.cgroup_mount);
  }
  // Runs the daemon beside `user`, which starts when it is ready; returns the daemon's end.
  Status run_beside(const std::function<void()>& user) {
    std::thread beside([&] {
      ready_.get_future().wait();
      user();
    });
    const Status done = run_daemon(config_, options_);
    if (!is_ready_) tell_ready();  // it failed to start: the user must not wait for ever
    beside.join();
    is_ready_ = false;
    return done;
  }

  void tell_ready() {
    is_ready_ = true;
    ready_.set_value();
  }

  TemporaryFolder base_;
  Config config_;
  DaemonOptions options_;
  Told told_;
  Status stop_;
  bool cgroup_existed_ = false;
  std::promise<void> ready_;
  bool is_ready_ = false;  // of the daemon's thread
};

TEST_F(DaemonLife, AnswersAndStopsOnRequest) {
  Result<nlohmann::json> status = make_error("not asked"), config = make_error("not asked"),
                         stop = make_error("not asked");
  const Status done = run_beside([&] {
    status = ask(socket(), {Command::status, "", GL_LANES});
    config = ask(socket(), {Command::config, "", GL_LANES});
    stop = ask(socket(), {Command::stop, "", GL_LANES});
  });
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((*status)["instance"], "default");
  EXPECT_EQ((*status)["pid"], getpid());
  EXPECT_EQ((*status)["features"][0]["why"], "a reason");
  EXPECT_EQ((*status)["counts"]["sockets"], 7);
  EXPECT_EQ((*status)["lanes"].size(), 4U);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ((*config)["values"]["link"]["interfaces"][0], "eth0");
  ASSERT_TRUE(stop) << stop.error().message;
  EXPECT_TRUE(cgroup_existed_) << "the data path needs the cgroup";
  EXPECT_EQ(told_.stopped, 1);
  EXPECT_TRUE(nothing_left());
}

TEST_F(DaemonLife, LanesOfJobsReachTheDatapath) {
  Result<nlohmann::json> unknown = make_error("not asked"), known = make_error("not asked"),
                         status = make_error("not asked");
  std::uint64_t id = 0;
  const InstanceCgroup cgroup(options_.cgroup_mount, "default");
  const Status done = run_beside([&] {
    unknown = ask(socket(), {Command::job, "nobody", GL_LANE_HIGH});
    static_cast<void>(cgroup.make_job("train"));
    static_cast<void>(cgroup.make_job("other"));
    id = *cgroup.job_id("train");
    known = ask(socket(), {Command::job, "train", GL_LANE_BULK});
    status = ask(socket(), {Command::status, "", GL_LANES});
    static_cast<void>(ask(socket(), {Command::stop, "", GL_LANES}));
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(unknown);
  ASSERT_TRUE(known) << known.error().message;
  ASSERT_EQ(told_.lanes.size(), 1U);
  EXPECT_EQ(told_.lanes[0], std::make_pair(id, GL_LANE_BULK));
  const nlohmann::json jobs = {{{"name", "other"}, {"processes", 0}, {"lane", "normal"}},
                               {{"name", "train"}, {"processes", 0}, {"lane", "bulk"}}};
  EXPECT_EQ((*status)["jobs"], jobs);
  EXPECT_TRUE(nothing_left());
}

TEST_F(DaemonLife, SignalsEndItButHangupDoesNot) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ready_ = {};
    Result<nlohmann::json> after_hangup = make_error("not asked");
    const pthread_t daemon = pthread_self();
    const Status done = run_beside([&] {
      pthread_kill(daemon, SIGHUP);
      after_hangup = ask(socket(), {Command::status, "", GL_LANES});
      pthread_kill(daemon, signal);
    });
    EXPECT_TRUE(done);
    EXPECT_TRUE(after_hangup);
    EXPECT_TRUE(nothing_left());
  }
  EXPECT_EQ(told_.stopped, 2);
}

TEST_F(DaemonLife, FailedStartLeavesNothing) {
  options_.start_datapath = [](const Config&, const std::string&, const std::string&) {
    return Result<std::unique_ptr<Datapath>>(make_error("no such kernel"));
  };
  const Status done = run_daemon(config_, options_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no such kernel");
  EXPECT_TRUE(nothing_left());
}

TEST_F(DaemonLife, FailedStopSaysHowToCleanUp) {
  stop_ = make_error("cannot detach");
  const Status done = run_beside([&] { static_cast<void>(ask(socket(), {Command::stop, "", GL_LANES})); });
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("gradlane cleanup --instance default"), std::string::npos);
}

TEST_F(DaemonLife, NoCgroupMountIsAnError) {
  options_.cgroup_mount = base_.path() + "/nowhere";
  const Status done = run_daemon(config_, options_);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("/nowhere/gradlane.slice"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(options_.folder));
}

TEST(Client, NobodyThereIsTold) {
  const TemporaryFolder folder;
  const auto answer = ask(folder.path() + "/none.sock", {Command::status, "", GL_LANES});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ENOENT);
  EXPECT_NE(answer.error().message.find("start gradlaned"), std::string::npos);
}

}  // namespace
}  // namespace gradlane
