// SPDX-License-Identifier: Apache-2.0
// gradlane run: a command as a job, in a cgroup of its own, so that unmodified programs get SCC and a lane.
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/commands.hpp"
#include "cli/instance_options.hpp"
#include "core/files.hpp"
#include "daemon/cgroup.hpp"
#include "daemon/client.hpp"
#include "daemon/host.hpp"
#include "daemon/lock.hpp"
#include "policy/lane_config.hpp"

namespace gradlane {
namespace {

struct RunOptions {
  std::string instance = "default";
  std::string job;
  std::string lane;
  std::string user;  // whom the command runs as; empty: as whoever runs this
  bool require = false;
  std::vector<std::string> command;
};

// As env(1) and others have them.
constexpr int own_failure = 125, cannot_execute = 126, not_found = 127;

// "python3-4711": the command's name, as far as a job's name can hold it, and our pid, which it keeps.
std::string default_job(const std::string& command) {
  constexpr std::size_t longest = 40;
  std::string name = command.substr(command.rfind('/') + 1).substr(0, longest);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !check_job_name(std::string("a") + c); }, '_');
  if (name.empty() || !check_job_name(name)) name.insert(0, "job");
  return name + "-" + std::to_string(getpid());
}

// What keeps this process out of a job's folder, said so that a person can change it. Owning the folder is
// not enough: the kernel also asks for the right to move processes out of where they are.
Error not_allowed(Error error) {
  if (error.code == EACCES || error.code == EPERM) {
    error.message += "; run it as root: sudo gradlane run --user $USER -- COMMAND";
  }
  return error;
}

// Moves this process into the job's cgroup, which is made if it is not there.
Status enter(const InstanceCgroup& cgroup, const std::string& job) {
  // The daemon removes empty folders: after ours between making and entering it, we make it again.
  constexpr int attempts = 3;
  Status entered;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (const Status made = cgroup.make_job(job); !made) return not_allowed(made.error());
    entered = write_file(cgroup.job_path(job) + "/cgroup.procs", "0");
    if (entered || entered.error().code != ENOENT) break;
  }
  return entered ? entered : Status(not_allowed(entered.error()));
}

// Makes this process part of the job. The error says why it is not.
Status join(const RunOptions& options, const std::string& job) {
  const auto mount = find_cgroup2();
  if (!mount) return mount.error();
  const InstanceCgroup cgroup(*mount, options.instance);
  if (!cgroup.exists()) {
    return make_error("instance " + options.instance + " is not running (no cgroup " + cgroup.path() +
                      "): start gradlaned");
  }
  if (!options.lane.empty()) {
    // Before the process can have a socket.
    if (const Status made = cgroup.make_job(job); !made) return not_allowed(made.error());
    const auto set =
        ask(socket_path(run_folder, options.instance), {Command::job, job, *lane_by_name(options.lane)});
    if (!set) {
      const std::string sentence = "the job has no lane of its own: " + set.error().message;
      if (options.require) return make_error(sentence);
      std::fprintf(stderr, "gradlane: %s\n", sentence.c_str());
    }
  }
  return enter(cgroup, job);
}

// Becomes that user for good, with the user's groups.
Status become(const std::string& user) {
  errno = 0;
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr) return make_error("there is no user " + user + ": name another with --user");
  if (initgroups(entry->pw_name, entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 ||
      setuid(entry->pw_uid) != 0) {
    return system_error("become the user", user, errno);
  }
  return {};
}

// Returns only if the command cannot be executed.
int execute(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const auto& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execvp's type
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int failed = errno;
  std::fprintf(stderr, "gradlane: cannot execute %s: %s\n", arguments[0], std::strerror(failed));
  return failed == ENOENT ? not_found : cannot_execute;
}

int run_command(const RunOptions& options) {
  const std::string job = options.job.empty() ? default_job(options.command.front()) : options.job;
  if (const Status joined = join(options, job); !joined) {
    std::fprintf(stderr, "gradlane: %s%s\n", joined.error().message.c_str(),
                 options.require ? "" : "; the command runs without gradlane");
    if (options.require) return own_failure;
  }
  if (!options.user.empty()) {
    if (const Status became = become(options.user); !became) {
      std::fprintf(stderr, "gradlane: %s\n", became.error().message.c_str());
      return own_failure;
    }
  }
  return execute(options.command);
}

}  // namespace

void add_run(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("run", "Run a command as a job");
  const auto options = std::make_shared<RunOptions>();
  command->add_option("--instance", options->instance, "Name of the instance (default: default)")
      ->check(instance_name_problem);
  command
      ->add_option("--job", options->job, "Name of the job (default: the command's name and pid); may exist")
      ->check([](const std::string& name) {
        const Status valid = check_job_name(name);
        return valid ? std::string() : valid.error().message;
      });
  command->add_option("--lane", options->lane, "Lane of the job's sockets that have no tag of their own")
      ->check(CLI::IsMember({"urgent", "high", "normal", "bulk"}));
  command->add_option("--user", options->user, "Run the command as this user (as root)");
  command->add_flag("--require", options->require,
                    "Fail with 125 instead of running the command without gradlane");
  command->add_option("COMMAND", options->command, "The command and its arguments, after --")->required();
  command->footer(
      "The command takes this process's place: its exit status is the result, signals reach it. If it "
      "cannot\n"
      "become a job (no daemon, no permission), a warning says why and it runs without gradlane.\n"
      "Examples:\n  gradlane run -- python3 train.py --epochs 3\n"
      "  gradlane run --job backup --lane bulk -- rsync -a /data host:/data\n"
      "  sudo gradlane run --user $USER -- ./train");
  command->callback([options, &exit_status] { exit_status = run_command(*options); });
}

}  // namespace gradlane
