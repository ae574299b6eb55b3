// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.hpp"

#include <spdlog/spdlog.h>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/cuda/load.hpp"

namespace gradlane::train {

Result<std::unique_ptr<Backend>> make_backend(const std::string& kind) {
  if (kind == "cpu") return make_cpu_backend(CpuLevel::kBest);
  if (kind == "cuda") {
    auto cuda = load_cuda_backend();
    if (cuda) return cuda;
    return make_error("cannot train with CUDA: " + cuda.error().message + "; use backend cpu or auto");
  }
  if (kind == "auto") {
    auto cuda = load_cuda_backend();
    if (cuda) return cuda;
    auto cpu = make_cpu_backend(CpuLevel::kBest);
    spdlog::warn("no CUDA ({}): training on the {}", cuda.error().message, cpu->name());
    return cpu;
  }
  return make_error("there is no backend \"" + kind + "\": use auto, cpu or cuda");
}

}  // namespace gradlane::train
