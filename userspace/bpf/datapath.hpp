// SPDX-License-Identifier: Apache-2.0
// The kernel side of one instance: loads the BPF objects, fills their maps, pins and attaches them, takes
// over what a crashed predecessor left, and takes everything away again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "gradlane/abi/lane.h"
#include "policy/config.hpp"

namespace gradlane {

enum class FeatureLevel { full, fallback, off };

// What became of one feature on this kernel: "marker", "scc", "grants", ...
struct FeatureState {
  std::string name;
  FeatureLevel level = FeatureLevel::off;
  std::string why;  // empty where level is full
};

struct NamedCount {
  std::string name;
  std::string meaning;
  std::uint64_t value = 0;
};

// What one lane did, since the maps were made.
struct LaneState {
  std::uint64_t packets = 0, bytes = 0, rewritten = 0;  // sent by this host's jobs
  std::uint32_t active_senders = 0;                     // to this host, now
  std::uint64_t grant_byte_s = 0;                       // what each of them is told
};

class Datapath {
 public:
  virtual ~Datapath() = default;

  // Loads and attaches everything that config asks for. cgroup is the instance's cgroup v2 folder
  // (".../gradlane.slice/INSTANCE"), which exists. Features that this kernel lacks are left out and say so in
  // features(); an error means that nothing of it could work, and leaves nothing behind.
  static Result<std::unique_ptr<Datapath>> start(const Config& config, const std::string& instance,
                                                 const std::string& cgroup);

  virtual std::vector<FeatureState> features() const = 0;
  virtual Result<std::vector<NamedCount>> counts() const = 0;
  virtual Result<std::array<LaneState, GL_LANES>> lanes() const = 0;
  // From now on, untagged sockets of the job in that cgroup (its id: the inode number of its folder) go into
  // this lane instead of the configured default. Replaces an earlier choice.
  virtual Status set_job_lane(std::uint64_t cgroup_id, gl_lane lane) = 0;
  // Takes the choice back; the daemon calls it when the job's folder is gone. None was made: no error.
  virtual Status forget_job_lane(std::uint64_t cgroup_id) = 0;
  // Detaches everything and removes the pins; the kernel part stays while another live instance uses it.
  virtual Status stop() = 0;
};

// Detaches and unpins everything of an instance whose daemon is not there (`gradlane off`, `cleanup`).
// Removing what does not exist is no error.
Status remove_datapath(const std::string& instance);
// The names of all instances that have pins.
std::vector<std::string> pinned_instances();
// What this kernel can do, without changing anything: for `gradlane doctor`.
std::vector<FeatureState> probe_features();

}  // namespace gradlane
