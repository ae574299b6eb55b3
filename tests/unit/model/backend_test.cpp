// SPDX-License-Identifier: Apache-2.0
// Every backend against the bodies of the kernels, and those against definitions written down again.
#include "backend/backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "backend/kernels.hpp"
#include "support.hpp"

namespace gradlane::train {
namespace {

constexpr std::array<ImageShape, 6> kShapes{
    {{1, 28, 28}, {3, 7, 7}, {2, 5, 4}, {4, 2, 9}, {1, 2, 2}, {16, 14, 14}}};

std::size_t floats(ImageShape s) { return product({s.channels, s.height, s.width}); }

class OperationTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Here, OperationTest, ::testing::ValuesIn(backends_here()), case_name);

float naive_element(const Gemm& g, int row, int column) {
  double sum = g.accumulate ? g.c[row * g.columns + column] : 0.0;
  for (int k = 0; k < g.depth; ++k) {
    const float a = g.transpose_a ? g.a[k * g.rows + row] : g.a[row * g.depth + k];
    const float b = g.transpose_b ? g.b[column * g.depth + k] : g.b[k * g.columns + column];
    sum += static_cast<double>(a) * b;
  }
  return static_cast<float>(sum);
}

std::vector<float> naive(const Gemm& g) {
  std::vector<float> result;
  for (int row = 0; row < g.rows; ++row) {
    for (int column = 0; column < g.columns; ++column) result.push_back(naive_element(g, row, column));
  }
  return result;
}

// Products of all shapes that layers use and some odd ones, in all eight forms.
template <typename Check>
void for_each_product(Check check) {
  for (const auto& [rows, columns, depth] : std::vector<std::array<int, 3>>{{1, 1, 1},
                                                                            {3, 5, 2},
                                                                            {16, 784, 9},
                                                                            {32, 196, 144},
                                                                            {8, 32, 1568},
                                                                            {8, 10, 32},
                                                                            {32, 1568, 8},
                                                                            {1, 7, 9}}) {
    const auto a = random_values(product({rows, depth}), 1);
    const auto b = random_values(product({depth, columns}), 2);
    for (unsigned form = 0; form < 8; ++form) {
      auto c = random_values(product({rows, columns}), 3);
      check(Gemm{rows, columns, depth, a.data(), (form & 1U) != 0, b.data(), (form & 2U) != 0, c.data(),
                 (form & 4U) != 0},
            a, b, c);
    }
  }
}

TEST_P(OperationTest, Gemm) {
  for_each_product([this](Gemm g, const auto& a, const auto& b, const auto& c) {
    const auto expected = naive(g);
    const auto device_a = put(a);
    const auto device_b = put(b);
    const auto device_c = put(c);
    g.a = device_a.get();
    g.b = device_b.get();
    g.c = device_c.get();
    backend().gemm(g);
    expect_near(get(device_c, c.size()), expected, 1e-4);
  });
}

// A BLAS that stores by columns, given what column_major() says, computes our product.
TEST(KernelTest, ColumnMajorGemm) {
  for_each_product([](const Gemm& g, const auto&, const auto&, auto& c) {
    const auto expected = naive(g);
    const auto m = kernel::column_major(g);
    ASSERT_EQ(m.result, c.data());
    for (int row = 0; row < m.rows; ++row) {
      for (int column = 0; column < m.columns; ++column) {
        float& result = m.result[row + column * m.result_leading];
        double sum = g.accumulate ? result : 0.0;
        for (int k = 0; k < m.depth; ++k) {
          const int first = m.transpose_first ? k + row * m.first_leading : row + k * m.first_leading;
          const int second =
              m.transpose_second ? column + k * m.second_leading : k + column * m.second_leading;
          sum += static_cast<double>(m.first[first]) * m.second[second];
        }
        result = static_cast<float>(sum);
      }
    }
    expect_near(c, expected, 1e-5);
  });
}

TEST_P(OperationTest, Im2col) {
  for (const ImageShape s : kShapes) {
    const auto image = random_values(floats(s), 4);
    std::vector<float> expected;
    for (int row = 0; row < s.channels * 9; ++row) {
      for (int y = 0; y < s.height; ++y) {
        for (int x = 0; x < s.width; ++x) expected.push_back(kernel::im2col(s, image.data(), row, y, x));
      }
    }
    const auto device_image = put(image);
    const auto columns = put(random_values(floats(s) * 9, 5));  // what was there before must not matter
    backend().im2col(s, device_image.get(), columns.get());
    EXPECT_EQ(get(columns, floats(s) * 9), expected);
  }
}

// Written down again: entry (c * 9 + i * 3 + j, y, x) is pixel (c, y + i - 1, x + j - 1), or 0 outside.
TEST(KernelTest, Im2colIsItsDefinition) {
  const ImageShape s{2, 3, 4};
  const auto image = random_values(floats(s), 6);
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int y = 0; y < 3; ++y) {
          for (int x = 0; x < 4; ++x) {
            const int from_y = y + i - 1;
            const int from_x = x + j - 1;
            const bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 4;
            const float pixel =
                inside ? image[static_cast<std::size_t>(c) * 12 + static_cast<std::size_t>(from_y) * 4 +
                               static_cast<std::size_t>(from_x)]
                       : 0.0F;
            EXPECT_EQ(kernel::im2col(s, image.data(), c * 9 + i * 3 + j, y, x), pixel);
          }
        }
      }
    }
  }
}

TEST_P(OperationTest, Col2im) {
  for (const ImageShape s : kShapes) {
    const auto columns = random_values(floats(s) * 9, 7);
    std::vector<float> expected;
    for (int c = 0; c < s.channels; ++c) {
      for (int y = 0; y < s.height; ++y) {
        for (int x = 0; x < s.width; ++x) expected.push_back(kernel::col2im(s, columns.data(), c, y, x));
      }
    }
    const auto device_columns = put(columns);
    const auto image = put(random_values(floats(s), 8));
    backend().col2im(s, device_columns.get(), image.get());
    EXPECT_EQ(get(image, floats(s)), expected);
  }
}

// <im2col(a), b> = <a, col2im(b)>: they are transpositions of each other.
TEST(KernelTest, Col2imTransposesIm2col) {
  for (const ImageShape s : kShapes) {
    const auto a = random_values(floats(s), 9);
    const auto b = random_values(floats(s) * 9, 10);
    double left = 0;
    double right = 0;
    std::size_t at = 0;
    for (int row = 0; row < s.channels * 9; ++row) {
      for (int y = 0; y < s.height; ++y) {
        for (int x = 0; x < s.width; ++x)
          left += static_cast<double>(kernel::im2col(s, a.data(), row, y, x)) * b[at++];
      }
    }
    at = 0;
    for (int c = 0; c < s.channels; ++c) {
      for (int y = 0; y < s.height; ++y) {
        for (int x = 0; x < s.width; ++x)
          right += static_cast<double>(kernel::col2im(s, b.data(), c, y, x)) * a[at++];
      }
    }
    EXPECT_NEAR(left, right, 1e-4);
  }
}

TEST_P(OperationTest, Bias) {
  for (const BiasShape s :
       {BiasShape{3, 4, 49}, BiasShape{8, 10, 1}, BiasShape{2, 16, 784}, BiasShape{1, 1, 5}}) {
    const auto count = product({s.batch, s.channels, s.inner});
    const auto values = random_values(count, 11);
    const auto bias = random_values(static_cast<std::size_t>(s.channels), 12);
    std::vector<float> sums(bias.size());
    std::vector<float> with_bias = values;
    for (std::size_t i = 0; i < count; ++i) {
      const auto channel = static_cast<std::size_t>(kernel::bias_channel(s, static_cast<long>(i)));
      EXPECT_EQ(channel, i / static_cast<std::size_t>(s.inner) % bias.size());
      with_bias[i] += bias[channel];
      sums[channel] += values[i];
    }
    for (int channel = 0; channel < s.channels; ++channel) {
      double sum = 0;
      for (int part = 0; part < 128; ++part) {
        sum += kernel::bias_gradient_part(s, values.data(), channel, part, 128);
      }
      EXPECT_NEAR(sum, sums[static_cast<std::size_t>(channel)], 1e-3);
    }
    const auto device_values = put(values);
    const auto device_bias = put(bias);
    const auto device_sums = put(bias);
    backend().bias_gradient(s, device_values.get(), device_sums.get());
    expect_near(get(device_sums, sums.size()), sums, 1e-4);
    backend().add_bias(s, device_bias.get(), device_values.get());
    EXPECT_EQ(get(device_values, count), with_bias);
  }
}

TEST_P(OperationTest, Relu) {
  auto input = random_values(1001, 13);
  input[5] = 0.0F;
  const auto gradient = random_values(1001, 14);
  std::vector<float> output;
  std::vector<float> input_gradient;
  for (std::size_t i = 0; i < input.size(); ++i) {
    output.push_back(std::max(input[i], 0.0F));
    input_gradient.push_back(input[i] > 0.0F ? gradient[i] : 0.0F);
  }
  const auto device_input = put(input);
  const auto device_gradient = put(gradient);
  const auto result = put(gradient);
  backend().relu_forward(input.size(), device_input.get(), result.get());
  EXPECT_EQ(get(result, input.size()), output);
  backend().relu_backward(input.size(), device_input.get(), device_gradient.get(), result.get());
  EXPECT_EQ(get(result, input.size()), input_gradient);
}

TEST_P(OperationTest, MaxPool) {
  constexpr int kBatch = 3;
  for (const ImageShape s : kShapes) {
    auto input = random_values(floats(s) * kBatch, 15);
    for (std::size_t i = 0; i + 1 < input.size(); i += 5) input[i] = input[i + 1];  // equal ones
    const int height = s.height / 2;
    const int width = s.width / 2;
    const auto outputs = product({kBatch, s.channels, height, width});
    const auto gradient = random_values(outputs, 16);
    std::vector<float> output;
    std::vector<float> input_gradient;
    for (int plane = 0; plane < kBatch * s.channels; ++plane) {
      const float* in = input.data() + product({plane, s.height, s.width});
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const float* corner = in + product({2, y, s.width}) + 2L * x;
          output.push_back(std::max({corner[0], corner[1], corner[s.width], corner[s.width + 1]}));
        }
      }
      const float* g = gradient.data() + product({plane, height, width});
      for (int y = 0; y < s.height; ++y) {
        for (int x = 0; x < s.width; ++x) input_gradient.push_back(kernel::max_pool_gradient(s, in, g, y, x));
      }
    }
    const auto device_input = put(input);
    const auto device_gradient = put(gradient);
    const auto device_output = put(gradient);
    const auto device_input_gradient = put(input);
    backend().max_pool_forward(kBatch, s, device_input.get(), device_output.get());
    EXPECT_EQ(get(device_output, outputs), output);
    backend().max_pool_backward(kBatch, s, device_input.get(), device_gradient.get(),
                                device_input_gradient.get());
    EXPECT_EQ(get(device_input_gradient, input.size()), input_gradient);
    // Each output's gradient goes to exactly one input.
    EXPECT_NEAR(std::accumulate(input_gradient.begin(), input_gradient.end(), 0.0),
                std::accumulate(gradient.begin(), gradient.end(), 0.0), 1e-5);
  }
}

TEST_P(OperationTest, SoftmaxCrossEntropy) {
  constexpr int kBatch = 5;
  constexpr int kClasses = 7;
  auto logits = random_values(product({kBatch, kClasses}), 17);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] *= i < kClasses ? 500.0F : 5.0F;  // no overflow
  const std::vector<std::uint8_t> labels{0, 6, 3, 3, 1};
  std::vector<float> gradient;
  std::vector<float> losses;
  std::vector<float> hits;
  for (std::size_t sample = 0; sample < kBatch; ++sample) {
    const auto row = std::span(logits).subspan(sample * kClasses, kClasses);
    const float top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - top);
    for (std::size_t i = 0; i < kClasses; ++i) {
      const double share = std::exp(static_cast<double>(row[i]) - top) / sum;
      gradient.push_back(static_cast<float>(share - (i == labels[sample] ? 1.0 : 0.0)));
    }
    losses.push_back(static_cast<float>(std::log(sum) + top - row[labels[sample]]));
    hits.push_back(row[labels[sample]] == top ? 1.0F : 0.0F);
  }
  const auto device_logits = put(logits);
  const auto device_labels = put(labels);
  const Buffer<float> device_gradient(backend(), gradient.size());
  const Buffer<float> device_losses(backend(), kBatch);
  const Buffer<float> device_hits(backend(), kBatch);
  backend().softmax_cross_entropy(kBatch, kClasses, device_logits.get(), device_labels.get(),
                                  device_gradient.get(), device_losses.get(), device_hits.get());
  expect_near(get(device_gradient, gradient.size()), gradient, 1e-5);
  expect_near(get(device_losses, kBatch), losses, 1e-5);
  EXPECT_EQ(get(device_hits, kBatch), hits);
}

TEST(MakeBackendTest, AutoAlwaysWorks) {
  const auto chosen = make_backend("auto");
  ASSERT_TRUE(chosen) << chosen.error().message;
  const auto cuda = make_backend("cuda");
  EXPECT_THAT((*chosen)->name(), ::testing::StartsWith(cuda ? "cuda (" : "cpu ("));
  if (!cuda) {
    EXPECT_THAT(cuda.error().message,
                ::testing::MatchesRegex("cannot train with CUDA: .+; use backend cpu or auto"));
  }
}

TEST(MakeBackendTest, RefusesOtherNames) {
  const auto backend = make_backend("tpu");
  ASSERT_FALSE(backend);
  EXPECT_THAT(backend.error().message, ::testing::HasSubstr("use auto, cpu or cuda"));
}

}  // namespace
}  // namespace gradlane::train
