// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/load.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

namespace gradlane::train {
namespace {

// The library stays loaded for good: CUDA keeps threads and handlers that outlive any backend.
Result<void*> open_library() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string beside = program.parent_path() / kCudaLibrary;
  const bool is_beside = ::access(beside.c_str(), F_OK) == 0;
  void* library = ::dlopen(is_beside ? beside.c_str() : kCudaLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe)
  return make_error(why != nullptr ? why : "the library cannot be loaded");
}

}  // namespace

Result<std::unique_ptr<Backend>> load_cuda_backend() {
  const auto library = open_library();
  if (!library) return library.error();
  // A function pointer from dlsym has no other conversion.
  const auto entry = reinterpret_cast<CudaEntry>(::dlsym(*library, kCudaEntry));  // NOLINT
  if (entry == nullptr)
    return make_error(std::string(kCudaLibrary) + " is of another version; build it again");
  std::array<char, 256> why{};
  std::unique_ptr<Backend> backend(entry(why.data(), why.size()));
  if (!backend) return make_error(why.data());
  return backend;
}

}  // namespace gradlane::train
