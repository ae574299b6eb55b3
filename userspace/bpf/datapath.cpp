// SPDX-License-Identifier: Apache-2.0
#include "bpf/datapath.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gl_lane.skel.h>
#include <gl_sock.skel.h>
#include <net/if.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <cstdarg>
#include <filesystem>
#include <numeric>
#include <optional>

#include "bpf/attach_tc.hpp"
#include "bpf/kernel_part.hpp"
#include "bpf/map.hpp"
#include "bpf/pins.hpp"
#include "bpf/probe.hpp"
#include "bpf/skeleton.hpp"
#include "gradlane/abi/observe.h"
#include "gradlane/abi/scc.h"
#include "policy/lane_config.hpp"
#include "policy/scc_config.hpp"

namespace gradlane {

namespace fs = std::filesystem;

namespace {

struct CounterText {
  const char* name;
  const char* meaning;
};
constexpr CounterText kCounters[] = {
#define GL_COUNTER_TEXT(id, name, meaning) {name, meaning},
    GL_COUNTERS(GL_COUNTER_TEXT)
#undef GL_COUNTER_TEXT
};
static_assert(std::size(kCounters) == GL_COUNTER_MAX);

std::string lane_folder(const std::string& instance) { return pin_folder(instance, "lane", GL_LANE_VERSION); }
std::string sock_folder(const std::string& instance) { return pin_folder(instance, "scc", GL_SCC_VERSION); }

// libbpf's own words are for bug reports: what matters is said by our errors.
int print_libbpf(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG && !spdlog::should_log(spdlog::level::trace)) return 0;
  char text[4096];
  const int length = std::vsnprintf(text, sizeof(text), format, arguments);
  for (std::string_view rest(text, std::min<std::size_t>(length < 0 ? 0 : length, sizeof(text) - 1));
       !rest.empty();) {
    const auto end = rest.find('\n');
    if (end != 0) spdlog::debug("{}", rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return length;
}

std::uint32_t current_slot() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint32_t>((now.tv_sec * 1000000000ULL + now.tv_nsec) / GL_SLOT_NS);
}

// The kernel counts when packets arrive; a person asks at any time.
std::uint32_t senders_now(const gl_activity& activity, int lane) {
  const std::uint32_t now = current_slot();
  std::uint32_t senders = 0;
  for (std::uint32_t age = 0; age <= activity.idle_slots[lane] && age < GL_WHEEL; age++) {
    const std::uint32_t slot = now - age;
    if (static_cast<std::int32_t>(slot - activity.slot) > 0) continue;
    senders += activity.count[lane][slot & (GL_WHEEL - 1)];
  }
  return senders;
}

class LoadedDatapath : public Datapath {
 public:
  LoadedDatapath(std::string instance, Skeleton<gl_lane_bpf> lane, Skeleton<gl_sock_bpf> sock,
                 KernelPart kernel)
      : instance_(std::move(instance)),
        lane_(std::move(lane)),
        sock_(std::move(sock)),
        kernel_(std::move(kernel)) {}

  // Fills the maps, then attaches: no program ever runs without its settings.
  Status attach(const Config& config, const std::string& cgroup, const KernelFeatures& kernel) {
    interfaces_ = config.link.interfaces;
    std::uint64_t rate = config.link.rate_bit_s;
    for (const auto& interface : interfaces_) {
      if (config.link.rate_bit_s == 0) rate += interface_speed(interface);
    }
    auto settings = make_scc_config(config, rate);
    if (config.observe_only || !config.scc.enabled) {
      settings.enabled = 0;
      features_.push_back({"scc", FeatureLevel::off,
                           config.observe_only ? "observe-only mode" : "switched off by scc.enabled"});
    } else if (settings.payload_rate == 0) {
      settings.enabled = 0;
      features_.push_back({"scc", FeatureLevel::off,
                           "the interfaces do not tell their speed: set link.rate in the configuration"});
    } else {
      settings.enabled = register_scc(kernel) ? 1 : 0;
    }
    // The socket policy takes a rate of 0 for missing settings; without a rate nothing is granted anyway.
    if (settings.payload_rate == 0) settings.payload_rate = 1;

    const auto lanes = make_lane_config(config.lanes, config.observe_only);
    if (auto done = Map<__u32, gl_lane_config>(lane_->maps.gl_lane_config).set(0, lanes); !done) return done;
    if (auto done = Map<__u32, gl_scc_config>(sock_->maps.gl_scc_config).set(0, settings); !done) return done;

    if (auto done = attach_cgroup(cgroup); !done) return done;
    for (const auto& interface : interfaces_) {
      auto done = attach_egress(interface, lane_->progs.gl_mark, lane_folder(instance_), kernel.tcx);
      if (!done) return done;
    }
    drop_stale_interfaces();
    if (config.observe_only) {
      features_.push_back({"marker", FeatureLevel::fallback, "observe-only mode: counts, does not mark"});
    } else if (!kernel.tcx) {
      features_.push_back({"marker", FeatureLevel::fallback, "a clsact filter: the kernel has no tcx"});
    } else {
      features_.push_back({"marker", FeatureLevel::full, ""});
    }
    return {};
  }

  std::vector<FeatureState> features() const override { return features_; }

  Result<std::vector<NamedCount>> counts() const override {
    std::vector<NamedCount> named;
    for (__u32 i = 0; i < GL_COUNTER_MAX; i++) {
      std::uint64_t sum = 0;
      for (const bpf_map* map : {lane_->maps.gl_count, sock_->maps.gl_count}) {
        auto values = PerProcessorMap<__u32, __u64>(map).get(i);
        if (!values) return values.error();
        sum = std::accumulate(values->begin(), values->end(), sum);
      }
      named.push_back({kCounters[i].name, kCounters[i].meaning, sum});
    }
    return named;
  }

  Result<std::array<LaneState, GL_LANES>> lanes() const override {
    std::array<LaneState, GL_LANES> states{};
    auto activity = Map<__u32, gl_activity>(sock_->maps.gl_activity).get(GL_ARRIVING);
    if (!activity) return activity.error();
    for (__u32 lane = 0; lane < GL_LANES; lane++) {
      auto counts = PerProcessorMap<__u32, gl_lane_count>(lane_->maps.gl_lane_count).get(lane);
      if (!counts) return counts.error();
      for (const auto& count : *counts) {
        states[lane].packets += count.packets;
        states[lane].bytes += count.bytes;
        states[lane].rewritten += count.rewritten;
      }
      states[lane].active_senders = senders_now(*activity, static_cast<int>(lane));
      states[lane].grant_byte_s = activity->grant[lane];
    }
    return states;
  }

  Status set_job_lane(std::uint64_t cgroup_id, gl_lane lane) override {
    return Map<__u64, __u32>(lane_->maps.gl_job_lane).set(cgroup_id, lane);
  }

  Status forget_job_lane(std::uint64_t cgroup_id) override {
    return Map<__u64, __u32>(lane_->maps.gl_job_lane).remove(cgroup_id);
  }

  Status stop() override {
    auto removed = remove_instance(instance_);
    auto left = kernel_.leave();
    return removed ? left : removed;
  }

  // Removes pins and filters of an instance, not its share in the kernel part.
  static Status remove_instance(const std::string& instance) {
    remove_filters(instance);
    return remove_pin_folder(std::string(GL_PIN_ROOT) + "/" + instance);
  }

 private:
  bool register_scc(const KernelFeatures& kernel) {
    if (kernel.cong_control_arguments == 0) {
      features_.push_back({"scc", FeatureLevel::off, "the kernel has no congestion control by BPF"});
      return false;
    }
    if (auto registered = kernel_.register_scc(kernel); !registered) {
      features_.push_back({"scc", FeatureLevel::off, registered.error().message});
      return false;
    }
    if (!kernel.struct_ops_link) {
      features_.push_back({"scc", FeatureLevel::fallback, "registered without a link: the kernel has none"});
    } else {
      features_.push_back({"scc", FeatureLevel::full, ""});
    }
    return true;
  }

  Status attach_cgroup(const std::string& cgroup) {
    const Fd folder(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return system_error("open cgroup", cgroup, errno);
    for (const bpf_program* program :
         {sock_->progs.gl_arrive, sock_->progs.gl_leave, sock_->progs.gl_policy}) {
      auto done = attach_pinned(
          sock_folder(instance_) + "/link_" + bpf_program__name(program), program,
          [&] { return bpf_program__attach_cgroup(program, folder.get()); }, "cgroup " + cgroup);
      if (!done) return done;
    }
    return {};
  }

  // Links of interfaces that are no longer configured go, as do filters that a kernel without tcx needed.
  void drop_stale_interfaces() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(lane_folder(instance_), error)) {
      const std::string name = entry.path().filename();
      const auto of_interface = [&](const std::string& interface) { return name == "link_" + interface; };
      if (name.starts_with("link_") && std::none_of(interfaces_.begin(), interfaces_.end(), of_interface)) {
        fs::remove(entry.path(), error);
      }
    }
  }

  // The pinned program tells which filter is ours.
  static void remove_filters(const std::string& instance) {
    const Fd program(bpf_obj_get((lane_folder(instance) + "/gl_mark").c_str()));
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (!program || bpf_obj_get_info_by_fd(program.get(), &info, &length) != 0) return;
    struct if_nameindex* all = if_nameindex();
    for (struct if_nameindex* one = all; one != nullptr && one->if_index != 0; one++) {
      detach_egress_filter(one->if_name, info.id);
    }
    if_freenameindex(all);
  }

  std::string instance_;
  Skeleton<gl_lane_bpf> lane_;
  Skeleton<gl_sock_bpf> sock_;
  KernelPart kernel_;
  std::vector<std::string> interfaces_;
  std::vector<FeatureState> features_;
};

// Loads both objects with their maps pinned, or taken over from a predecessor.
Result<std::unique_ptr<LoadedDatapath>> load(const std::string& instance, const KernelFeatures& features,
                                             KernelPart kernel) {
  auto lane = Skeleton<gl_lane_bpf>::open("gl_lane");
  if (!lane) return lane.error();
  auto sock = Skeleton<gl_sock_bpf>::open("gl_sock");
  if (!sock) return sock.error();
  const std::string storage = kernel_pin_folder() + "/gl_socket";
  const auto own = [](const std::string& name) { return name != "gl_socket"; };
  for (const auto& [object, folder, shared] :
       {std::tuple{(*lane)->obj, lane_folder(instance), (*lane)->maps.gl_socket},
        std::tuple{(*sock)->obj, sock_folder(instance), (*sock)->maps.gl_socket}}) {
    if (auto made = make_pin_folder(folder); !made) return made.error();
    if (auto done = pin_maps(object, folder, own); !done) return done.error();
    bpf_map__set_pin_path(shared, storage.c_str());
  }
  // Links of tcx want the type said at load; kernels without tcx refuse it.
  if (features.tcx) bpf_program__set_expected_attach_type((*lane)->progs.gl_mark, BPF_TCX_EGRESS);
  if (auto loaded = lane->load(); !loaded) return loaded.error();
  if (auto loaded = sock->load(); !loaded) return loaded.error();
  // A new program takes the place of the pinned one; its filter is replaced when it is attached.
  const std::string pin = lane_folder(instance) + "/gl_mark";
  std::error_code ignored;
  fs::remove(pin, ignored);
  if (const int error = bpf_program__pin((*lane)->progs.gl_mark, pin.c_str())) {
    return system_error("pin", pin, error);
  }
  return std::make_unique<LoadedDatapath>(instance, std::move(*lane), std::move(*sock), std::move(kernel));
}

}  // namespace

Result<std::unique_ptr<Datapath>> Datapath::start(const Config& config, const std::string& instance,
                                                  const std::string& cgroup) {
  libbpf_set_print(print_libbpf);
  auto kernel = probe_kernel();
  if (!kernel) return kernel.error();
  auto joined = KernelPart::join(instance);
  if (!joined) return joined.error();
  auto loaded = load(instance, *kernel, std::move(*joined));
  if (loaded) {
    auto attached = (*loaded)->attach(config, cgroup, *kernel);
    if (attached) return std::unique_ptr<Datapath>(std::move(*loaded));
    // Destroys the half-made one, and with it our lease.
    loaded = attached.error();
  }
  if (auto removed = remove_datapath(instance); !removed) {
    spdlog::warn("after a failed start: {}", removed.error().message);
  }
  return loaded.error();
}

Status remove_datapath(const std::string& instance) {
  libbpf_set_print(print_libbpf);
  if (auto free = check_lease_free(instance); !free) return free;
  auto removed = LoadedDatapath::remove_instance(instance);
  auto left = leave_kernel_part(instance);
  return removed ? left : removed;
}

std::vector<std::string> pinned_instances() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(GL_PIN_ROOT, error)) {
    const std::string name = entry.path().filename();
    if (name != GL_PIN_KERNEL) names.push_back(name);
  }
  return names;
}

std::vector<FeatureState> probe_features() {
  auto kernel = probe_kernel();
  if (!kernel) {
    return {{"marker", FeatureLevel::off, kernel.error().message},
            {"scc", FeatureLevel::off, kernel.error().message}};
  }
  std::vector<FeatureState> features;
  if (kernel->tcx) {
    features.push_back({"marker", FeatureLevel::full, ""});
  } else {
    features.push_back({"marker", FeatureLevel::fallback, "a clsact filter: the kernel has no tcx"});
  }
  if (kernel->cong_control_arguments == 0) {
    features.push_back({"scc", FeatureLevel::off, "the kernel has no congestion control by BPF"});
  } else if (!kernel->struct_ops_link) {
    features.push_back({"scc", FeatureLevel::fallback, "registered without a link: the kernel has none"});
  } else {
    features.push_back({"scc", FeatureLevel::full, ""});
  }
  return features;
}

}  // namespace gradlane
