// SPDX-License-Identifier: Apache-2.0
// Ownership of bpftool's skeletons.
#pragma once

#include <bpf/libbpf.h>

#include <memory>
#include <string>

#include "core/result.hpp"

namespace gradlane {

// Owner of a generated skeleton S with its functions S::open, S::load, S::destroy.
template <typename S>
class Skeleton {
 public:
  // Opens without loading, so that maps and programs can still be changed.
  static Result<Skeleton> open(const std::string& name) {
    S* raw = S::open(nullptr);
    if (raw == nullptr) return system_error("open BPF object", name, errno);
    return Skeleton(raw, name);
  }

  Status load() {
    if (const int error = S::load(skeleton_.get())) {
      return Error{system_error("load BPF object", name_, error).message + advice(error), -error};
    }
    return {};
  }

  S* operator->() const { return skeleton_.get(); }

 private:
  struct Destroy {
    void operator()(S* skeleton) const { S::destroy(skeleton); }
  };

  Skeleton(S* raw, std::string name) : skeleton_(raw), name_(std::move(name)) {}

  static std::string advice(int error) {
    if (error == -EPERM) return "; it needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON";
    if (error == -EINVAL)
      return "; a pinned map of another version may be in the way: run `gradlane cleanup`";
    return "; run with --log-level debug to see the verifier's words";
  }

  std::unique_ptr<S, Destroy> skeleton_;
  std::string name_;
};

}  // namespace gradlane
