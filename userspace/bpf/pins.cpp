// SPDX-License-Identifier: Apache-2.0
#include "bpf/pins.hpp"

#include <bpf/bpf.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "gradlane/abi/core.h"
#include "gradlane/abi/scc.h"

namespace gradlane {

namespace fs = std::filesystem;

namespace {

// Destroying a pinned link only drops our reference.
struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, DestroyLink>;

}  // namespace

std::string pin_folder(const std::string& instance, const std::string& feature, int version) {
  return std::string(GL_PIN_ROOT) + "/" + instance + "/" + feature + "-" + std::to_string(version);
}

std::string kernel_pin_folder() { return pin_folder(GL_PIN_KERNEL, "scc", GL_SCC_VERSION); }

Status make_pin_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return system_error("make pin folder", path, error.value());
  for (fs::path folder = path; folder.string().size() >= std::string(GL_PIN_ROOT).size();
       folder = folder.parent_path()) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  return {};
}

Status remove_pin_folder(const std::string& path) {
  std::error_code error;
  // The BPF file system lists no file types to recurse by, so that remove_all() cannot be used on it.
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory()) {
      if (auto removed = remove_pin_folder(entry.path()); !removed) return removed;
    } else if (::unlink(entry.path().c_str()) != 0 && errno != ENOENT) {
      return system_error("remove pin", entry.path(), errno);
    }
  }
  for (fs::path folder = path; folder.string().size() >= std::string(GL_PIN_ROOT).size();
       folder = folder.parent_path()) {
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) {
      if (errno == ENOTEMPTY && folder != fs::path(path)) break;
      return system_error("remove pin folder", folder, errno);
    }
  }
  return {};
}

Status pin_maps(bpf_object* object, const std::string& folder,
                const std::function<bool(const std::string&)>& keep) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    const std::string name = bpf_map__name(map);
    if (bpf_map__is_internal(map) || !keep(name)) continue;
    const std::string path = folder + "/" + name;
    if (const int error = bpf_map__set_pin_path(map, path.c_str())) {
      return system_error("set the pin of map", name, error);
    }
  }
  return {};
}

Status attach_pinned(const std::string& pin, const bpf_program* program,
                     const std::function<bpf_link*()>& attach, const std::string& hook) {
  if (const Link pinned{bpf_link__open(pin.c_str())}) {
    if (bpf_link__update_program(pinned.get(), const_cast<bpf_program*>(program)) == 0) {
      spdlog::info("took over {} at {}", bpf_program__name(program), hook);
      return {};
    }
    // ENOLINK: the interface or cgroup of the link is gone; another one with its name may be there.
    spdlog::info("the pinned link {} has lost its hook: {}", pin, std::strerror(errno));
    ::unlink(pin.c_str());
  }
  const Link link{attach()};
  if (!link) return system_error(std::string("attach ") + bpf_program__name(program) + " to", hook, errno);
  if (const int error = bpf_link__pin(link.get(), pin.c_str())) return system_error("pin", pin, error);
  return {};
}

}  // namespace gradlane
