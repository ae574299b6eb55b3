// SPDX-License-Identifier: Apache-2.0
#include "model/network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/sampler.hpp"
#include "model/network_spec.hpp"
#include "model/sgd.hpp"
#include "support.hpp"

namespace gradlane::train {
namespace {

constexpr const char* kSmall = "conv 3, relu, pool, conv 4, relu, dense 5, relu, dense 3";
constexpr ImageShape kSmallInput{2, 6, 6};
constexpr ImageShape kPicture{1, 28, 28};

std::unique_ptr<Network> make(Backend& backend, const char* spec, ImageShape input, int classes) {
  auto network = Network::create(backend, spec, input, classes, 42);
  EXPECT_TRUE(network) << network.error().message;
  return std::move(*network);
}

struct Batch {
  std::vector<float> images;
  std::vector<std::uint8_t> labels;
};

void pass(Network& network, const Batch& batch) {
  network.set_batch(batch.images, batch.labels);
  for (std::size_t i = 0; i < network.layers(); ++i) network.forward(i);
  for (std::size_t i = network.layers(); i-- > 0;) network.backward(i);
  EXPECT_TRUE(network.status());
}

std::vector<float> all_gradients(const Network& network) {
  std::vector<float> all;
  for (std::size_t i = 0; i < network.layers(); ++i) {
    all.insert(all.end(), network.gradient(i).begin(), network.gradient(i).end());
  }
  return all;
}

// Ten classes of noisy pictures: each is a bright square at a place of its own on a dark ground.
Dataset synthetic(std::size_t count) {
  Dataset dataset;
  dataset.count = count;
  dataset.height = 28;
  dataset.width = 28;
  dataset.classes = 10;
  Random random(5, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = random.below(10);
    dataset.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::uint32_t y = 0; y < 28; ++y) {
      for (std::uint32_t x = 0; x < 28; ++x) {
        const bool bright = y / 7 == label / 3 && x / 7 == label % 3;
        dataset.pixels.push_back(static_cast<std::uint8_t>(random.below(100) + (bright ? 120 : 0)));
      }
    }
  }
  return dataset;
}

Batch batch_of(const Dataset& dataset, const std::vector<std::uint32_t>& indices) {
  Batch batch{std::vector<float>(indices.size() * dataset.image_size()),
              std::vector<std::uint8_t>(indices.size())};
  select(dataset, indices, batch.images, batch.labels);
  return batch;
}

// The small network once more, in double precision and as its definition reads; parameters are those of the
// layers one after another. It shares no code with what it checks.
class Reference {
 public:
  explicit Reference(Batch batch) : batch_(std::move(batch)) {}

  double loss(const std::vector<double>& parameters) {
    parameters_ = parameters.data();
    std::vector<double> x(batch_.images.begin(), batch_.images.end());
    convolution(x, 2, 3, 6);
    relu(x);
    pool(x, 6);
    convolution(x, 3, 4, 3);
    relu(x);
    dense(x, 36, 5);
    relu(x);
    dense(x, 5, 3);
    double sum = 0;
    for (std::size_t n = 0; n < batch_.labels.size(); ++n) {
      const double* logits = x.data() + n * 3;
      const double total = std::exp(logits[0]) + std::exp(logits[1]) + std::exp(logits[2]);
      sum += std::log(total) - logits[batch_.labels[n]];
    }
    return sum;
  }

 private:
  void convolution(std::vector<double>& x, int inputs, int outputs, int side) {
    std::vector<double> y;
    const double* bias = parameters_ + product({outputs, inputs, 9});
    for (std::size_t n = 0; n < batch_.labels.size(); ++n) {
      const double* image = x.data() + static_cast<long>(n) * inputs * side * side;
      for (int o = 0; o < outputs; ++o) {
        for (int row = 0; row < side; ++row) {
          for (int column = 0; column < side; ++column) {
            double sum = bias[o];
            for (int c = 0; c < inputs; ++c) {
              for (int i = 0; i < 3; ++i) {
                for (int j = 0; j < 3; ++j) {
                  const int r = row + i - 1;
                  const int k = column + j - 1;
                  if (r < 0 || r >= side || k < 0 || k >= side) continue;
                  sum += parameters_[((o * inputs + c) * 3 + i) * 3 + j] * image[(c * side + r) * side + k];
                }
              }
            }
            y.push_back(sum);
          }
        }
      }
    }
    parameters_ = bias + outputs;
    x = y;
  }

  static void relu(std::vector<double>& x) {
    for (double& value : x) value = std::max(value, 0.0);
  }

  static void pool(std::vector<double>& x, int side) {
    std::vector<double> y;
    for (std::size_t start = 0; start < x.size(); start += static_cast<std::size_t>(side * side)) {
      for (int row = 0; row < side; row += 2) {
        for (int column = 0; column < side; column += 2) {
          const double* corner = x.data() + start + product({row, side}) + column;
          y.push_back(std::max({corner[0], corner[1], corner[side], corner[side + 1]}));
        }
      }
    }
    x = y;
  }

  void dense(std::vector<double>& x, int inputs, int outputs) {
    std::vector<double> y;
    const double* bias = parameters_ + product({outputs, inputs});
    for (std::size_t n = 0; n < batch_.labels.size(); ++n) {
      for (int o = 0; o < outputs; ++o) {
        const double* weights = parameters_ + product({o, inputs});
        y.push_back(
            std::inner_product(weights, weights + inputs, x.data() + static_cast<long>(n) * inputs, bias[o]));
      }
    }
    parameters_ = bias + outputs;
    x = y;
  }

  Batch batch_;
  const double* parameters_ = nullptr;
};

class NetworkTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Here, NetworkTest, ::testing::ValuesIn(backends_here()), case_name);

TEST_P(NetworkTest, AgreesWithDefinitionAndFiniteDifferences) {
  const auto network = make(backend(), kSmall, kSmallInput, 3);
  const Batch batch{random_values(5 * size_of(kSmallInput), 31), {0, 2, 1, 1, 2}};
  std::vector<double> parameters;
  for (std::size_t i = 0; i < network->layers(); ++i) {
    for (float& parameter : network->parameters(i)) {
      if (parameter == 0.0F) parameter = 0.05F;  // biases too
      parameters.push_back(parameter);
    }
  }
  pass(*network, batch);
  Reference reference(batch);
  EXPECT_NEAR(network->loss_sum(), reference.loss(parameters), 1e-4);

  const auto gradients = all_gradients(*network);
  ASSERT_EQ(gradients.size(), parameters.size());
  EXPECT_GT(*std::max_element(gradients.begin(), gradients.end()), 0.1F);
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double saved = parameters[i];
    parameters[i] = saved + kStep;
    const double high = reference.loss(parameters);
    parameters[i] = saved - kStep;
    const double low = reference.loss(parameters);
    parameters[i] = saved;
    ASSERT_NEAR(gradients[i], (high - low) / (2 * kStep), 1e-4) << "parameter " << i;
  }
}

TEST_P(NetworkTest, EightWorkersEqualOneOnTheGlobalBatch) {
  const Dataset dataset = synthetic(200);
  auto one = BatchSampler::create(dataset.count, 1, 1, 64);
  auto eight = BatchSampler::create(dataset.count, 1, 8, 8);
  ASSERT_TRUE(one && eight);
  const auto network = make(backend(), kDefaultNetwork, kPicture, 10);
  pass(*network, batch_of(dataset, one->indices(2, 0)));
  const auto expected = all_gradients(*network);
  const double expected_loss = network->loss_sum();

  std::vector<float> sum(expected.size());
  double loss = 0;
  for (std::size_t rank = 0; rank < 8; ++rank) {
    pass(*network, batch_of(dataset, eight->indices(2, rank)));
    const auto part = all_gradients(*network);
    std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
    loss += network->loss_sum();
  }
  EXPECT_NEAR(loss, expected_loss, 1e-3);
  expect_near(sum, expected, 1e-4);
}

TEST_P(NetworkTest, RepeatsBitForBit) {
  const Dataset dataset = synthetic(64);
  std::vector<std::uint32_t> indices(8);
  std::iota(indices.begin(), indices.end(), 3U);
  const Batch batch = batch_of(dataset, indices);
  const auto first = make(backend(), kDefaultNetwork, kPicture, 10);
  pass(*first, batch);
  const auto gradients = all_gradients(*first);
  const auto loss = first->loss_sum();
  // Another network, with other memory and a history of other batches.
  const auto second = make(backend(), kDefaultNetwork, kPicture, 10);
  ASSERT_TRUE(second->evaluate(dataset));
  for (int repeat = 0; repeat < 3; ++repeat) {
    pass(*second, batch);
    EXPECT_EQ(second->loss_sum(), loss);
    EXPECT_EQ(all_gradients(*second), gradients);
  }
}

TEST_P(NetworkTest, Learns) {
  const Dataset dataset = synthetic(320);
  auto sampler = BatchSampler::create(dataset.count, 9, 1, 32);
  ASSERT_TRUE(sampler);
  const auto network = make(backend(), kDefaultNetwork, kPicture, 10);
  const auto before = network->evaluate(dataset);
  ASSERT_TRUE(before) << before.error().message;
  std::vector<std::vector<float>> velocity;
  velocity.reserve(network->layers());
  for (std::size_t i = 0; i < network->layers(); ++i) velocity.emplace_back(network->parameters(i).size());
  for (std::uint64_t step = 0; step < 60; ++step) {
    pass(*network, batch_of(dataset, sampler->indices(step, 0)));
    for (std::size_t i = 0; i < network->layers(); ++i) {
      sgd_momentum(network->parameters(i), velocity[i], network->gradient(i), 32, 0.02F, 0.9F);
    }
  }
  const auto after = network->evaluate(dataset);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_NEAR(before->loss_mean, std::log(10.0), 1.0) << "first weights of a wrong scale";
  EXPECT_LT(after->loss_mean, before->loss_mean / 4);
  EXPECT_GT(after->accuracy, 0.9);
}

TEST_P(NetworkTest, EvaluatesEachSampleOnce) {
  const Dataset dataset = synthetic(71);  // not a multiple of any batch
  const auto network = make(backend(), kDefaultNetwork, kPicture, 10);
  const auto evaluation = network->evaluate(dataset);
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  std::vector<std::uint32_t> indices(71);
  std::iota(indices.begin(), indices.end(), 0U);
  pass(*network, batch_of(dataset, indices));
  EXPECT_DOUBLE_EQ(evaluation->accuracy, static_cast<double>(network->correct()) / 71);
  EXPECT_NEAR(evaluation->loss_mean, network->loss_sum() / 71, 1e-5);
}

TEST(NetworkCreateTest, DefaultHasTheSizesItClaims) {
  const auto backend = make_cpu_backend(CpuLevel::kBest);
  const auto network = make(*backend, kDefaultNetwork, kPicture, 10);
  ASSERT_EQ(network->layers(), 11U);
  std::vector<std::string> names;
  std::size_t parameters = 0;
  double multiply_adds = 0;
  for (std::size_t i = 0; i < network->layers(); ++i) {
    const LayerInfo& info = network->layer(i);
    names.push_back(info.name);
    parameters += info.parameters;
    multiply_adds += info.multiply_adds;
    EXPECT_EQ(network->parameters(i).size(), info.parameters);
    EXPECT_EQ(network->gradient(i).size(), info.parameters);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("conv1", "relu1", "pool1", "conv2", "relu2", "pool2", "conv3",
                                            "relu3", "dense1", "relu4", "dense2"));
  EXPECT_EQ(parameters, 64'586U);
  EXPECT_EQ(network->layer(8).parameters, 50'208U);
  EXPECT_EQ(network->layer(8).shape, "1568 -> 32");
  EXPECT_NEAR(multiply_adds, 1.5e6, 0.05e6);
}

TEST(NetworkCreateTest, FirstParametersDependOnTheSeedAlone) {
  const auto backend = make_cpu_backend(CpuLevel::kBest);
  const auto other = make_cpu_backend(CpuLevel::kBaseline);
  const auto a = make(*backend, kDefaultNetwork, kPicture, 10);
  const auto b = make(*other, kDefaultNetwork, kPicture, 10);
  const auto c = Network::create(*backend, kDefaultNetwork, kPicture, 10, 43);
  ASSERT_TRUE(c);
  for (std::size_t i = 0; i < a->layers(); ++i) {
    EXPECT_TRUE(std::ranges::equal(a->parameters(i), b->parameters(i)));
    if (!a->parameters(i).empty()) {
      EXPECT_FALSE(std::ranges::equal(a->parameters(i), (*c)->parameters(i)));
    }
  }
  const auto weights = a->parameters(8).first(50'176);
  const double squares = std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
  EXPECT_NEAR(squares / 50'176 * 1568 / 2, 1.0, 0.03) << "not He's variance";
  for (const float bias : a->parameters(8).subspan(50'176)) EXPECT_EQ(bias, 0.0F);
}

TEST(NetworkCreateTest, RefusesWhatDoesNotFit) {
  const auto backend = make_cpu_backend(CpuLevel::kBest);
  const auto error_of = [&](const char* spec, ImageShape input) {
    const auto network = Network::create(*backend, spec, input, 10, 1);
    return network ? std::string("no error") : network.error().message;
  };
  EXPECT_THAT(error_of("dense 11", kPicture), ::testing::HasSubstr("must be \"dense 10\""));
  EXPECT_THAT(error_of("dense 10, relu", kPicture), ::testing::HasSubstr("must be \"dense 10\""));
  EXPECT_THAT(error_of("pool, pool, pool, pool, pool, dense 10", kPicture), ::testing::HasSubstr("pool5"));
  EXPECT_THAT(error_of("dense 5, pool, dense 10", kPicture), ::testing::HasSubstr("pool1"));
  EXPECT_THAT(error_of("conv 4096, conv 4096, dense 10", kPicture), ::testing::HasSubstr("too large"));
}

TEST(NetworkCreateTest, EvaluateRefusesOtherPictures) {
  const auto backend = make_cpu_backend(CpuLevel::kBest);
  const auto network = make(*backend, "dense 10", {1, 14, 14}, 10);
  const auto evaluation = network->evaluate(synthetic(3));
  ASSERT_FALSE(evaluation);
  EXPECT_THAT(evaluation.error().message, ::testing::HasSubstr("28 x 28"));
}

TEST(SgdTest, IsItsDefinition) {
  auto parameters = random_values(1003, 41);
  auto velocity = random_values(1003, 42);
  const auto gradient = random_values(1003, 43);
  const auto old_parameters = parameters;
  const auto old_velocity = velocity;
  sgd_momentum(parameters, velocity, gradient, 16, 0.1F, 0.9F);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double expected = 0.9 * old_velocity[i] + gradient[i] / 16.0;
    EXPECT_NEAR(velocity[i], expected, 1e-6);
    EXPECT_NEAR(parameters[i], old_parameters[i] - 0.1 * expected, 1e-6);
  }
}

// The result of an element does not depend on where it lies, so neither on vector registers and what is left
// of them.
TEST(SgdTest, TreatsEachElementAlike) {
  const auto gradient = random_values(64, 44);
  auto parameters = random_values(64, 45);
  auto velocity = random_values(64, 46);
  auto one_by_one = parameters;
  auto velocity_one_by_one = velocity;
  sgd_momentum(parameters, velocity, gradient, 7, 0.05F, 0.9F);
  for (std::size_t i = 0; i < 64; ++i) {
    sgd_momentum(std::span(one_by_one).subspan(i, 1), std::span(velocity_one_by_one).subspan(i, 1),
                 std::span(gradient).subspan(i, 1), 7, 0.05F, 0.9F);
  }
  EXPECT_EQ(parameters, one_by_one);
  EXPECT_EQ(velocity, velocity_one_by_one);
}

}  // namespace
}  // namespace gradlane::train
