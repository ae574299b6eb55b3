// SPDX-License-Identifier: Apache-2.0
// What exists once per kernel and is shared by all instances: the congestion control and the socket storage.
#pragma once

#include <string>

#include "bpf/probe.hpp"
#include "core/fd.hpp"
#include "core/result.hpp"

namespace gradlane {

// An instance's share in the kernel part. The instance holds a lease, a locked file, as long as it lives; the
// last live instance that leaves takes the kernel part away.
class KernelPart {
 public:
  // Takes the lease. Fails if another live process has the lease of this instance.
  static Result<KernelPart> join(const std::string& instance);

  // Registers SCC unless it is registered already. The socket storage is made by this, or by whichever object
  // of an instance is loaded first.
  Status register_scc(const KernelFeatures& features);
  // Gives the lease back; the last one unregisters SCC and removes the kernel part's pins. Sockets that use
  // SCC keep it until they close; the kernel frees it then.
  Status leave();

 private:
  KernelPart(std::string instance, Fd lease) : instance_(std::move(instance)), lease_(std::move(lease)) {}

  std::string instance_;
  Fd lease_;
};

// An error where a live process holds the lease of this instance.
Status check_lease_free(const std::string& instance);
// For an instance that has no live daemon: removes its lease, and the kernel part if nobody lives on it.
Status leave_kernel_part(const std::string& instance);

}  // namespace gradlane
