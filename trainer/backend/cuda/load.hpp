// SPDX-License-Identifier: Apache-2.0
// The CUDA backend is a shared object of its own, so that programs start where CUDA's libraries are missing.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace gradlane::train {

// Name of the shared object, and of its one function: a new backend owned by the caller, or nullptr with the
// reason written to `why` (a text of at most `size` bytes).
inline constexpr const char* kCudaLibrary = "libgradlane-cuda.so";
inline constexpr const char* kCudaEntry = "gradlane_cuda_backend";
using CudaEntry = Backend* (*)(char* why, std::size_t size);

// Loads it from the program's folder, else from the linker's search path. Errors: no such library, one of
// CUDA's libraries is missing, no device answers.
Result<std::unique_ptr<Backend>> load_cuda_backend();

}  // namespace gradlane::train
