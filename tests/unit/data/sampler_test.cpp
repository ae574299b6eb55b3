// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/random.hpp"

namespace gradlane::train {
namespace {

using Indices = std::vector<std::uint32_t>;

BatchSampler sampler(std::size_t samples, std::uint64_t seed, std::size_t workers, std::size_t batch) {
  auto made = BatchSampler::create(samples, seed, workers, batch);
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

TEST(SamplerTest, WorkersSeeTogetherWhatOneWouldSee) {
  for (const std::size_t samples : {24UL, 100UL, 101UL}) {
    for (const std::size_t workers : {1UL, 2UL, 3UL, 8UL}) {
      const std::size_t batch = 24 / workers;
      BatchSampler one = sampler(samples, 7, 1, workers * batch);
      BatchSampler many = sampler(samples, 7, workers, batch);
      for (std::uint64_t step = 0; step < 20; ++step) {
        Indices together;
        for (std::size_t rank = 0; rank < workers; ++rank) {
          const Indices piece = many.indices(step, rank);
          EXPECT_EQ(piece.size(), batch);
          together.insert(together.end(), piece.begin(), piece.end());
        }
        EXPECT_EQ(together, one.indices(step, 0));
      }
    }
  }
}

TEST(SamplerTest, AnEpochSeesEachSampleAtMostOnce) {
  BatchSampler s = sampler(50, 3, 2, 6);
  ASSERT_EQ(s.steps_per_epoch(), 4U);
  std::set<Indices> epochs;
  std::set<std::uint32_t> ever;
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    Indices seen;
    for (std::uint64_t step = 0; step < 4; ++step) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        const Indices piece = s.indices(epoch * 4 + step, rank);
        seen.insert(seen.end(), piece.begin(), piece.end());
      }
    }
    EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 50U);
    EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), 48U);
    ever.insert(seen.begin(), seen.end());
    epochs.insert(seen);
  }
  EXPECT_EQ(epochs.size(), 10U) << "epochs must have orders of their own";
  EXPECT_EQ(ever.size(), 50U) << "what an epoch leaves out must be another thing each time";
}

TEST(SamplerTest, DependsOnItsArgumentsAlone) {
  BatchSampler forward = sampler(40, 5, 2, 4);
  BatchSampler backward = sampler(40, 5, 2, 4);
  std::vector<Indices> there(30);
  for (std::uint64_t step = 0; step < 30; ++step) there[step] = forward.indices(step, step % 2);
  for (std::uint64_t step = 30; step-- > 0;) EXPECT_EQ(backward.indices(step, step % 2), there[step]);
  EXPECT_NE(sampler(40, 6, 2, 4).indices(0, 0), there[0]);
}

TEST(SamplerTest, RefusesBatchesThatDoNotFit) {
  EXPECT_TRUE(BatchSampler::create(16, 1, 4, 4));
  EXPECT_FALSE(BatchSampler::create(15, 1, 4, 4));
  EXPECT_FALSE(BatchSampler::create(16, 1, 0, 4));
  EXPECT_FALSE(BatchSampler::create(16, 1, 4, 0));
  EXPECT_FALSE(BatchSampler::create(16, 1, std::size_t{1} << 63U, 2));
}

TEST(RandomTest, GivesTheSameNumbersEverywhere) {
  // SplitMix64 from state 0, as its authors publish it; both streams' offsets are constants of ours.
  Random random(0, ~std::uint64_t{0});
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4U);
}

TEST(RandomTest, IsEven) {
  Random random(1, 2);
  std::vector<int> counts(10);
  double sum = 0;
  double squares = 0;
  constexpr double kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[random.below(10)];
    const float value = random.symmetric();
    EXPECT_GE(value, -1.0F);
    EXPECT_LT(value, 1.0F);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 10, 600);
  EXPECT_NEAR(sum / kDraws, 0.0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.01);
}

}  // namespace
}  // namespace gradlane::train
