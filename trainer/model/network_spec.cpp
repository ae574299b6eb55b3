// SPDX-License-Identifier: Apache-2.0
#include "model/network_spec.hpp"

#include <charconv>
#include <string>
#include <system_error>

namespace gradlane::train {
namespace {

constexpr std::size_t kMaxLayers = 64;
constexpr int kMaxOutputs = 4096;

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Error bad_layer(std::size_t index, std::string_view text, const std::string& rule) {
  return make_error("layer " + std::to_string(index + 1) + " of the network, \"" +
                    std::string(text.substr(0, 40)) + "\", " + rule);
}

Result<LayerSpec> parse_layer(std::size_t index, std::string_view text) {
  if (text == "relu") return LayerSpec{LayerKind::kRelu, 0};
  if (text == "pool") return LayerSpec{LayerKind::kMaxPool, 0};
  const auto space = text.find_first_of(" \t");
  const auto word = text.substr(0, space);
  if (word != "conv" && word != "dense") {
    return bad_layer(index, text, "is unknown: use conv CHANNELS, dense OUTPUTS, relu or pool");
  }
  const auto number = space == std::string_view::npos ? std::string_view() : trim(text.substr(space));
  int outputs = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), outputs);
  if (error != std::errc() || end != number.data() + number.size() || outputs < 1 || outputs > kMaxOutputs) {
    return bad_layer(index, text, "needs one number, 1.." + std::to_string(kMaxOutputs));
  }
  return LayerSpec{word == "conv" ? LayerKind::kConvolution : LayerKind::kDense, outputs};
}

}  // namespace

Result<std::vector<LayerSpec>> parse_network(std::string_view text) {
  std::vector<LayerSpec> layers;
  while (true) {
    if (layers.size() == kMaxLayers) {
      return make_error("the network has more than " + std::to_string(kMaxLayers) + " layers: use fewer");
    }
    const auto comma = text.find(',');
    const auto layer = parse_layer(layers.size(), trim(text.substr(0, comma)));
    if (!layer) return layer.error();
    layers.push_back(*layer);
    if (comma == std::string_view::npos) return layers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace gradlane::train
