// SPDX-License-Identifier: Apache-2.0
// links: gl_train_model
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/network_spec.hpp"

// Any text is either a list of layers within the limits or an error with a sentence.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto layers = gradlane::train::parse_network({reinterpret_cast<const char*>(data), size});
  if (!layers) {
    if (layers.error().message.empty()) std::abort();
    return 0;
  }
  if (layers->empty() || layers->size() > 64) std::abort();
  for (const auto& layer : *layers) {
    if (layer.outputs < 0 || layer.outputs > 4096) std::abort();
  }
  return 0;
}
