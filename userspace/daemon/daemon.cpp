// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "core/fd.hpp"
#include "daemon/cgroup.hpp"
#include "daemon/lock.hpp"
#include "daemon/notify.hpp"
#include "daemon/report.hpp"
#include "daemon/server.hpp"
#include "policy/lane_config.hpp"

namespace gradlane {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// A predecessor that is just stopping has this long to go.
constexpr std::chrono::seconds lock_patience{5};
// How often jobs are looked at, and how long one must have been empty before its folder goes: somebody may
// have made it for a process that is still to come.
constexpr std::chrono::seconds scan_interval{5};
constexpr std::chrono::seconds empty_patience{30};

// Blocks the signals that end or wake the daemon for as long as it lives, and hands them out as reads.
class Signals {
 public:
  static Result<Signals> block() {
    Signals signals;
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, number);
    if (const int failed = pthread_sigmask(SIG_BLOCK, &wanted, &signals.before_); failed != 0) {
      return system_error("block", "signals", failed);
    }
    signals.fd_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.fd_) return system_error("make", "a signal descriptor", errno);
    return signals;
  }
  Signals(Signals&&) = default;
  Signals& operator=(Signals&&) = delete;
  ~Signals() {
    if (fd_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  int fd() const { return fd_.get(); }
  // The next signal, 0 if there is none.
  int next() const {
    signalfd_siginfo info{};
    return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  Signals() = default;
  Fd fd_;
  sigset_t before_{};
};

class Daemon {
 public:
  Daemon(const Config& config, const DaemonOptions& options)
      : config_(config), options_(options), cgroup_(options.cgroup_mount, options.instance) {}

  Status run();

 private:
  struct JobState {
    Clock::time_point last_busy;
    gl_lane lane = GL_LANES;  // as asked for; GL_LANES: none was
  };

  Status serve(const Signals& signals, ControlServer& server);
  Result<json> handle(const Request& request);
  Result<json> status();
  Result<json> set_job_lane(const Request& request);
  void scan_jobs(Clock::time_point now);
  Status stop();

  const Config& config_;
  const DaemonOptions& options_;
  InstanceCgroup cgroup_;
  std::unique_ptr<Datapath> datapath_;
  std::map<std::uint64_t, JobState> jobs_;  // by the id of the cgroup
  Clock::time_point started_ = Clock::now();
  bool stopping_ = false;
};

Status Daemon::run() {
  const auto signals = Signals::block();
  if (!signals) return signals.error();
  const auto lock = InstanceLock::take(options_.folder, options_.instance, lock_patience);
  if (!lock) return lock.error();
  if (const Status made = cgroup_.make(); !made) return made;
  auto datapath = options_.start_datapath(config_, options_.instance, cgroup_.path());
  if (!datapath) {
    cgroup_.remove();
    return datapath.error();
  }
  datapath_ = std::move(*datapath);
  Status served;
  {
    auto server = ControlServer::listen(socket_path(options_.folder, options_.instance),
                                        [this](const Request& request) { return handle(request); });
    served = server ? serve(*signals, **server) : Status(server.error());
    notify_manager("STOPPING=1");
  }
  const Status stopped = stop();
  return served ? stopped : served;
}

Status Daemon::serve(const Signals& signals, ControlServer& server) {
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {signals.fd(), server.ready_fd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return system_error("wait for", "events", errno);
  }
  for (const auto& feature : datapath_->features()) {
    if (feature.level == FeatureLevel::full) {
      spdlog::info("{}: full", feature.name);
    } else {
      spdlog::warn("{}: {} ({})", feature.name, level_name(feature.level), feature.why);
    }
  }
  spdlog::info("instance {} is ready, jobs belong into {}", options_.instance, cgroup_.path());
  options_.ready();
  notify_manager("READY=1");

  Clock::time_point next_scan = Clock::now();
  while (!stopping_) {
    constexpr int tick_ms = 1000;  // the resolution of the clients' time limits
    epoll_event event{};
    if (epoll_wait(epoll.get(), &event, 1, tick_ms) < 0 && errno != EINTR) {
      return system_error("wait for", "events", errno);
    }
    const auto now = Clock::now();
    server.serve(now);
    server.expire(now);
    while (const int signal = signals.next()) {
      if (signal == SIGHUP) {
        spdlog::warn("the configuration cannot be read again while running: restart the daemon instead");
      } else {
        spdlog::info("stopping: {}", strsignal(signal));
        stopping_ = true;
      }
    }
    if (now >= next_scan) {
      scan_jobs(now);
      next_scan = now + scan_interval;
    }
  }
  return {};
}

Result<json> Daemon::handle(const Request& request) {
  switch (request.command) {
    case Command::status:
      return status();
    case Command::config:
      return config_json(config_);
    case Command::job:
      return set_job_lane(request);
    case Command::stop:
      spdlog::info("stopping: asked to on the control socket");
      stopping_ = true;
      return json{{"stopping", true}};
  }
  return make_error("unknown command");
}

Result<json> Daemon::status() {
  const auto lanes = datapath_->lanes();
  if (!lanes) return lanes.error();
  const auto counts = datapath_->counts();
  if (!counts) return counts.error();
  json jobs = json::array();
  for (const auto& job : cgroup_.jobs()) {
    const auto known = jobs_.find(job.cgroup_id);
    const bool has_lane = known != jobs_.end() && known->second.lane != GL_LANES;
    jobs.push_back({{"name", job.name},
                    {"processes", job.processes},
                    {"lane", lane_name(has_lane ? known->second.lane : config_.lanes.default_lane)}});
  }
  utsname kernel{};
  uname(&kernel);
  return json{{"instance", options_.instance},
              {"pid", getpid()},
              {"version", GRADLANE_VERSION},
              {"kernel", kernel.release},
              {"uptime_s", std::chrono::duration<double>(Clock::now() - started_).count()},
              {"mode", config_.observe_only ? "observe" : "full"},
              {"interfaces", config_.link.interfaces},
              {"cgroup", cgroup_.path()},
              {"jobs", jobs},
              {"features", features_json(datapath_->features())},
              {"lanes", lanes_json(config_.lanes, *lanes)},
              {"counts", counts_json(*counts)}};
}

Result<json> Daemon::set_job_lane(const Request& request) {
  const auto id = cgroup_.job_id(request.job);
  if (!id) return id.error();
  if (const Status set = datapath_->set_job_lane(*id, request.lane); !set) return set.error();
  JobState& job = jobs_[*id];
  job.lane = request.lane;
  job.last_busy = Clock::now();
  spdlog::info("job {}: lane {}", request.job, lane_name(request.lane));
  return json{{"name", request.job}, {"lane", lane_name(request.lane)}};
}

void Daemon::scan_jobs(Clock::time_point now) {
  std::map<std::uint64_t, JobState> present;
  for (const auto& job : cgroup_.jobs()) {
    const auto known = jobs_.find(job.cgroup_id);
    JobState state = known != jobs_.end() ? known->second : JobState{now};
    if (job.processes > 0) state.last_busy = now;
    if (now - state.last_busy < empty_patience || !cgroup_.remove_job(job.name)) {
      present[job.cgroup_id] = state;
    } else {
      spdlog::info("job {} is over", job.name);
    }
  }
  for (const auto& [id, state] : jobs_) {
    if (state.lane == GL_LANES || present.contains(id)) continue;
    if (const Status forgotten = datapath_->forget_job_lane(id); !forgotten) {
      spdlog::warn("{}", forgotten.error().message);
    }
  }
  jobs_ = std::move(present);
}

Status Daemon::stop() {
  const Status stopped = datapath_->stop();
  for (const auto& job : cgroup_.remove()) {
    spdlog::warn("job {} still has {} processes: its cgroup {} stays, gradlane cleanup removes it later",
                 job.name, job.processes, cgroup_.job_path(job.name));
  }
  if (stopped) return stopped;
  return Error{
      stopped.error().message + "; remove what is left with gradlane cleanup --instance " + options_.instance,
      stopped.error().code};
}

}  // namespace

Status run_daemon(const Config& config, const DaemonOptions& options) {
  return Daemon(config, options).run();
}

}  // namespace gradlane
