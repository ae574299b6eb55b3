// SPDX-License-Identifier: Apache-2.0
#include "schedule/slices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace gradlane::train {
namespace {

// The layers of the default network that have parameters.
const std::vector<std::size_t> kDefaultLayers = {160, 4640, 9248, 50208, 330};

std::vector<std::size_t> random_layers(std::mt19937& random) {
  std::vector<std::size_t> layers(1 + random() % 12);
  for (std::size_t& parameters : layers) parameters = random() % 5 == 0 ? 0 : random() % 20000;
  return layers;
}

TEST(Slices, CoverEachLayerOnceAndInOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto layers = random_layers(random);
    const std::size_t slice_bytes = 4 + random() % 30000;
    std::vector<std::size_t> covered(layers.size(), 0);
    std::uint32_t previous = 0;
    for (const Slice& slice : cut_slices(layers, slice_bytes)) {
      ASSERT_GE(slice.floats, 1U);
      ASSERT_LE(slice.bytes(), slice_bytes);
      ASSERT_GE(slice.layer, previous);
      previous = slice.layer;
      ASSERT_EQ(slice.offset, covered[slice.layer]);
      covered[slice.layer] += slice.floats;
    }
    ASSERT_EQ(covered, layers);
  }
}

TEST(Lanes, RiseWithTheOrderOfUseAndNoneIsSkipped) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const auto slices = cut_slices(random_layers(random), 4 + random() % 30000);
    const std::size_t lanes = 1 + random() % 6;
    const auto lane_of = assign_lanes(slices, lanes);
    ASSERT_EQ(lane_of.size(), slices.size());
    if (slices.empty()) continue;
    ASSERT_EQ(lane_of.front(), 0);
    ASSERT_LT(lane_of.back(), lanes);
    for (std::size_t index = 1; index < lane_of.size(); ++index) {
      ASSERT_GE(lane_of[index], lane_of[index - 1]);
      ASSERT_LE(lane_of[index], lane_of[index - 1] + 1);
    }
    if (slices.size() >= lanes) {
      ASSERT_EQ(lane_of.back(), lanes - 1) << "a lane is empty";
    }
  }
}

TEST(Lanes, CarryComparableBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    // Many slices for each lane, so that none has to be filled up by force.
    std::vector<std::size_t> layers(4 + random() % 8);
    for (std::size_t& parameters : layers) parameters = 5000 + random() % 20000;
    const auto slices = cut_slices(layers, 4096);
    const auto lane_of = assign_lanes(slices, 4);
    std::vector<std::size_t> bytes(4, 0);
    std::size_t biggest = 0;
    for (std::size_t index = 0; index < slices.size(); ++index) {
      bytes[lane_of[index]] += slices[index].bytes();
      biggest = std::max(biggest, slices[index].bytes());
    }
    const double even = std::accumulate(bytes.begin(), bytes.end(), 0.0) / 4;
    for (const std::size_t lane_bytes : bytes)
      ASSERT_LE(std::abs(static_cast<double>(lane_bytes) - even), static_cast<double>(biggest));
  }
}

TEST(Lanes, AllCarrySomethingOfTheDefaultNetwork) {
  for (const std::size_t slice_bytes : {4096U, 16384U, 65536U, 1U << 20}) {
    const auto slices = cut_slices(kDefaultLayers, slice_bytes);
    const auto lane_of = assign_lanes(slices, 4);
    for (std::uint8_t lane = 0; lane < 4; ++lane)
      EXPECT_NE(std::ranges::count(lane_of, lane), 0)
          << "lane " << int{lane} << ", slices of " << slice_bytes;
  }
  // The first layers are the urgent ones; the big one is spread over lanes.
  const auto slices = cut_slices(kDefaultLayers, 16384);
  const auto lane_of = assign_lanes(slices, 4);
  std::vector<bool> big_layer_in(4, false);
  for (std::size_t index = 0; index < slices.size(); ++index) {
    if (slices[index].layer < 3) {
      EXPECT_EQ(lane_of[index], 0);
    }
    if (slices[index].layer == 3) big_layer_in[lane_of[index]] = true;
  }
  EXPECT_EQ(std::ranges::count(big_layer_in, true), 4);
}

}  // namespace
}  // namespace gradlane::train
