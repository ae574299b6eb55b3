// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/files.hpp"
#include "daemon/cgroup.hpp"
#include "daemon/host.hpp"
#include "daemon/names.hpp"
#include "lab/commands/commands.hpp"
#include "lab/netns.hpp"
#include "lab/plan.hpp"
#include "lab/state.hpp"

namespace gradlane::lab {
namespace {

struct Options {
  std::string name, host, job;
  std::vector<std::string> command;
};

// Moves this process into the cgroup of a job, which is made if it is not there.
Status join_job(const std::string& instance, const std::string& job) {
  if (Status checked = check_job_name(job); !checked) return checked;
  const auto mount = find_cgroup2();
  if (!mount) return mount.error();
  const InstanceCgroup cgroup(*mount, instance);
  Status done = cgroup.make();
  if (done) done = cgroup.make_job(job);
  if (done) done = write_file(cgroup.job_path(job) + "/cgroup.procs", "0");
  return done;
}

// Becomes the command; returns only if that is not possible.
Status become(const Options& options) {
  if (const auto state = read_state(options.name); !state) return state.error();
  const std::string name_space = namespace_of(options.name, options.host);
  if (Status done = enter_namespace(name_space); !done) {
    return make_error("there is no host \"" + options.host + "\" in lab \"" + options.name +
                      "\": see `gradlane-lab list`");
  }
  if (!options.job.empty()) {
    if (Status done = join_job(instance_of(options.name, options.host), options.job); !done) return done;
  }
  std::vector<char*> words;
  for (const auto& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  return system_error("run", words[0], errno);
}

}  // namespace

void add_exec(CLI::App& app) {
  auto* command = app.add_subcommand("exec", "Run a command on a host; its exit status is ours");
  const auto options = std::make_shared<Options>();
  add_name_option(*command, options->name);
  command->add_option("--job", options->job, "Put it into this job of the host's instance");
  command->add_option("HOST", options->host, "A host or switch of the lab")->required();
  command->add_option("COMMAND", options->command, "And its arguments, after --")->required();
  command->callback([options] {
    const Status failed = become(*options);
    std::fprintf(stderr, "gradlane-lab: %s\n", failed.error().message.c_str());
    // As a shell: 127 where there is no such command, 126 where it cannot run.
    const int code = failed.error().code;
    std::exit(code == ENOENT ? 127 : code != 0 ? 126 : 1);
  });
}

}  // namespace gradlane::lab
