// SPDX-License-Identifier: Apache-2.0
#include "model/network_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gradlane::train {
namespace {

std::string error_of(const std::string& text) {
  const auto layers = parse_network(text);
  return layers ? "no error" : layers.error().message;
}

TEST(NetworkSpecTest, ReadsEachKindOfLayer) {
  const auto layers = parse_network("conv 16,relu ,  pool,\tdense  10 ");
  ASSERT_TRUE(layers) << layers.error().message;
  EXPECT_THAT(*layers,
              ::testing::ElementsAre(LayerSpec{LayerKind::kConvolution, 16}, LayerSpec{LayerKind::kRelu, 0},
                                     LayerSpec{LayerKind::kMaxPool, 0}, LayerSpec{LayerKind::kDense, 10}));
  EXPECT_TRUE(parse_network(kDefaultNetwork));
}

TEST(NetworkSpecTest, NamesTheLayerThatIsWrong) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(error_of("conv 3, pol"),
              AllOf(HasSubstr("layer 2"), HasSubstr("\"pol\""), HasSubstr("relu or pool")));
  EXPECT_THAT(error_of(""), HasSubstr("layer 1"));
  EXPECT_THAT(error_of("relu,"), HasSubstr("layer 2"));
  EXPECT_THAT(error_of("relu 3"), HasSubstr("unknown"));
  for (const char* text :
       {"conv", "conv 0", "conv -1", "conv 4097", "dense 3x", "dense 1 2", "dense 99999999999"}) {
    EXPECT_THAT(error_of(text), AllOf(HasSubstr("layer 1"), HasSubstr("1..4096"))) << text;
  }
}

TEST(NetworkSpecTest, LimitsTheNumberOfLayers) {
  std::string text = "relu";
  for (int i = 1; i < 64; ++i) text += ",relu";
  EXPECT_TRUE(parse_network(text));
  EXPECT_THAT(error_of(text + ",relu"), ::testing::HasSubstr("more than 64 layers"));
}

}  // namespace
}  // namespace gradlane::train
