// SPDX-License-Identifier: Apache-2.0
#include "lab/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "core/fd.hpp"

extern char** environ;

namespace gradlane::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds limit{10};

// posix_spawn's two objects, released at the end.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

Result<pid_t> spawn(const std::vector<std::string>& arguments, SpawnSettings& settings) {
  std::vector<char*> words;
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, words[0], &settings.files, &settings.attributes, words.data(), environ);
  if (error == ENOENT)
    return make_error("there is no program " + arguments[0] + ": install it or put it in PATH");
  if (error != 0) return system_error("start", arguments[0], error);
  return child;
}

// The input as an open file that starts at its beginning.
Result<Fd> as_file(const std::string& input) {
  Fd file(memfd_create("input", MFD_CLOEXEC));
  if (!file) return system_error("make", "a file in memory", errno);
  for (std::size_t done = 0; done < input.size();) {
    const ssize_t written = write(file.get(), input.data() + done, input.size() - done);
    if (written < 0) return system_error("write", "a file in memory", errno);
    done += static_cast<std::size_t>(written);
  }
  if (lseek(file.get(), 0, SEEK_SET) < 0) return system_error("rewind", "a file in memory", errno);
  return file;
}

// The line of the input that "Command failed -:N" in a complaint means.
std::string failed_line(const std::string& complaint, const std::string& input) {
  const auto at = complaint.find("Command failed -:");
  if (at == std::string::npos) return {};
  const unsigned long wanted = std::strtoul(complaint.c_str() + at + 17, nullptr, 10);
  std::istringstream lines(input);
  std::string line;
  for (unsigned long i = 0; i < wanted && std::getline(lines, line); ++i) {
  }
  return line;
}

// The first line is the reason; the rest is what iproute2 adds.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string command_line(const std::vector<std::string>& arguments) {
  std::string text;
  for (const auto& argument : arguments) text += (text.empty() ? "" : " ") + argument;
  return text;
}

}  // namespace

Status run_program(const std::vector<std::string>& arguments, const std::string& input) {
  auto file = as_file(input);
  if (!file) return file.error();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("make", "a pipe", errno);
  const Fd complaints_in(ends[0]);
  Fd complaints_out(ends[1]);

  SpawnSettings settings;
  posix_spawn_file_actions_adddup2(&settings.files, file->get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&settings.files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.files, complaints_out.get(), STDERR_FILENO);
  const auto child = spawn(arguments, settings);
  if (!child) return child.error();
  complaints_out.reset();

  std::string complaints;
  bool late = false;
  const auto deadline = Clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{complaints_in.get(), POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      late = true;
      kill(*child, SIGKILL);
      break;
    }
    std::array<char, 4096> block{};
    const ssize_t got = read(complaints_in.get(), block.data(), block.size());
    if (got <= 0) break;
    complaints.append(block.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) return make_error("`" + command_line(arguments) + "` did not end within 10 s");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string line = failed_line(complaints, input);
  return make_error("`" + command_line(arguments) + "` failed" + (line.empty() ? "" : " at `" + line + "`") +
                    ": " + first_line(complaints));
}

Result<pid_t> start_program(const std::vector<std::string>& arguments, const std::string& log) {
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings.files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  posix_spawn_file_actions_adddup2(&settings.files, STDOUT_FILENO, STDERR_FILENO);
  // Nothing of ours, above all no lock, stays open in it.
  posix_spawn_file_actions_addclosefrom_np(&settings.files, STDERR_FILENO + 1);
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSID);
  return spawn(arguments, settings);
}

std::string own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace gradlane::lab
