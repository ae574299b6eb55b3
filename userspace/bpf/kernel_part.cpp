// SPDX-License-Identifier: Apache-2.0
#include "bpf/kernel_part.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gl_scc.skel.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "bpf/pins.hpp"
#include "bpf/skeleton.hpp"
#include "gradlane/abi/scc.h"

namespace gradlane {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRunFolder = "/run/gradlane";
constexpr const char* kLeaseFolder = "/run/gradlane/leases";

// The pin by which SCC stays registered: its link, or before kernel 6.4 its map.
std::string scc_pin() { return kernel_pin_folder() + "/" + GL_SCC_NAME; }

// Opens a file and locks it. Without wait an already locked one gives EWOULDBLOCK.
Result<Fd> lock_file(const std::string& path, bool wait) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return system_error("open", path, errno);
  if (::flock(file.get(), wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) return system_error("lock", path, errno);
  return file;
}

// Serialises what instances do to the kernel part. Held for moments only.
Result<Fd> lock_kernel_part() {
  std::error_code error;
  fs::create_directories(kLeaseFolder, error);
  if (error) return system_error("make", kLeaseFolder, error.value());
  return lock_file(std::string(kRunFolder) + "/kernel.lock", true);
}

std::string lease_path(const std::string& instance) { return std::string(kLeaseFolder) + "/" + instance; }

// Whether any instance other than this one is alive. Leases of dead owners are removed on the way.
bool others_live(const std::string& instance) {
  bool live = false;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kLeaseFolder, error)) {
    if (entry.path().filename() == instance) continue;
    if (lock_file(entry.path(), false)) {
      fs::remove(entry.path(), error);
    } else {
      live = true;
    }
  }
  return live;
}

// Before kernel 6.4 the pin is the map itself, whose element is the registration: it has to be deleted. Later
// it is a link, and the registration goes with it.
void unregister_map() {
  const Fd pinned(bpf_obj_get(scc_pin().c_str()));
  if (!pinned) return;
  std::error_code error;
  const auto kind = fs::read_symlink("/proc/self/fd/" + std::to_string(pinned.get()), error);
  if (kind != "anon_inode:bpf-map") return;
  const __u32 key = 0;
  if (bpf_map_delete_elem(pinned.get(), &key) != 0 && errno != ENOENT) {
    spdlog::warn("cannot unregister {}: {}", GL_SCC_NAME, std::strerror(errno));
  }
}

// Under the lock of the kernel part, by the owner of the lease or for a dead one.
Status leave_locked(const std::string& instance) {
  std::error_code error;
  fs::remove(lease_path(instance), error);
  if (others_live(instance)) return {};
  unregister_map();
  return remove_pin_folder(kernel_pin_folder());
}

}  // namespace

Result<KernelPart> KernelPart::join(const std::string& instance) {
  auto lock = lock_kernel_part();
  if (!lock) return lock.error();
  auto lease = lock_file(lease_path(instance), false);
  if (!lease) {
    return make_error("instance " + instance + " is alive in another process: stop that one first");
  }
  if (auto made = make_pin_folder(kernel_pin_folder()); !made) return made.error();
  return KernelPart(instance, std::move(*lease));
}

Status KernelPart::register_scc(const KernelFeatures& features) {
  auto lock = lock_kernel_part();
  if (!lock) return lock.error();
  if (fs::exists(scc_pin())) return {};

  auto opened = Skeleton<gl_scc_bpf>::open("gl_scc");
  if (!opened) return opened.error();
  auto& skeleton = *opened;
  const bool four = features.cong_control_arguments == 4;
  skeleton->struct_ops.gl_scc->cong_control =
      four ? skeleton->progs.gl_scc_control : skeleton->progs.gl_scc_control3;
  bpf_program__set_autoload(skeleton->progs.gl_scc_control, four);
  bpf_program__set_autoload(skeleton->progs.gl_scc_control3, !four);
  if (!features.struct_ops_link) {
    bpf_map__set_map_flags(skeleton->maps.gl_scc, bpf_map__map_flags(skeleton->maps.gl_scc) & ~BPF_F_LINK);
  }
  const std::string storage = kernel_pin_folder() + "/gl_socket";
  bpf_map__set_pin_path(skeleton->maps.gl_socket, storage.c_str());
  if (auto loaded = skeleton.load(); !loaded) return loaded.error();

  // The pin comes first where it is the only handle on the registration.
  if (!features.struct_ops_link) {
    if (const int error = bpf_map__pin(skeleton->maps.gl_scc, scc_pin().c_str())) {
      return system_error("pin", scc_pin(), error);
    }
  }
  bpf_link* link = bpf_map__attach_struct_ops(skeleton->maps.gl_scc);
  if (link == nullptr) {
    const int error = errno;
    fs::remove(scc_pin());
    return Error{system_error("register congestion control", GL_SCC_NAME, error).message +
                     (error == EEXIST ? "; another program has registered that name" : ""),
                 error};
  }
  if (features.struct_ops_link) {
    const int error = bpf_link__pin(link, scc_pin().c_str());
    bpf_link__destroy(link);
    if (error != 0) return system_error("pin", scc_pin(), error);
  } else {
    // Destroying the link would unregister; the pinned map keeps the registration.
    bpf_link__disconnect(link);
    bpf_link__destroy(link);
  }
  spdlog::info("registered congestion control {}", GL_SCC_NAME);
  return {};
}

Status KernelPart::leave() {
  auto lock = lock_kernel_part();
  if (!lock) return lock.error();
  lease_.reset();
  return leave_locked(instance_);
}

Status check_lease_free(const std::string& instance) {
  if (!fs::exists(lease_path(instance)) || lock_file(lease_path(instance), false)) return {};
  return make_error("instance " + instance + " is alive in another process: stop that one first");
}

Status leave_kernel_part(const std::string& instance) {
  auto lock = lock_kernel_part();
  if (!lock) return lock.error();
  return leave_locked(instance);
}

}  // namespace gradlane
