// SPDX-License-Identifier: Apache-2.0
// Gradients of each kind of layer against finite differences. Convolution and dense layers are linear in each
// argument, pooling and ReLU where no input crosses another, so that the differences are exact but for
// rounding.
#include "model/layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support.hpp"

namespace gradlane::train {
namespace {

constexpr int kBatch = 2;
constexpr double kTolerance = 2e-3;

class LayerTest : public BackendTest {
 protected:
  // A scalar of the outputs whose gradient by them is `coefficients`.
  double value(Layer& layer, const std::vector<float>& input, const std::vector<float>& parameters,
               const std::vector<float>& coefficients) {
    const auto device_input = put(input);
    const auto device_parameters = put(parameters);
    const auto output = put(coefficients);
    layer.forward(kBatch, device_input.get(), device_parameters.get(), output.get());
    const auto outputs = get(output, coefficients.size());
    return std::inner_product(outputs.begin(), outputs.end(), coefficients.begin(), 0.0);
  }

  void check(LayerSpec spec, ImageShape input_shape, const std::vector<float>& input, float step) {
    auto made = make_layer(backend(), spec, input_shape, 1);
    ASSERT_TRUE(made) << made.error().message;
    Layer& layer = **made;
    const auto parameters = random_values(layer.info().parameters, 21);
    const auto coefficients = random_values(kBatch * size_of(layer.output_shape()), 22);

    const auto device_input = put(input);
    const auto device_parameters = put(parameters);
    const auto device_coefficients = put(coefficients);
    const auto parameter_gradient = put(parameters);
    const auto input_gradient = put(input);
    layer.backward(kBatch, device_input.get(), device_parameters.get(), device_coefficients.get(),
                   parameter_gradient.get(), input_gradient.get());
    const auto by_parameters = get(parameter_gradient, parameters.size());
    const auto by_input = get(input_gradient, input.size());

    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto high = parameters;
      auto low = parameters;
      high[i] += step;
      low[i] -= step;
      const double slope =
          (value(layer, input, high, coefficients) - value(layer, input, low, coefficients)) /
          (static_cast<double>(high[i]) - low[i]);
      ASSERT_NEAR(by_parameters[i], slope, kTolerance) << "parameter " << i;
    }
    for (std::size_t i = 0; i < input.size(); ++i) {
      auto high = input;
      auto low = input;
      high[i] += step;
      low[i] -= step;
      const double slope =
          (value(layer, high, parameters, coefficients) - value(layer, low, parameters, coefficients)) /
          (static_cast<double>(high[i]) - low[i]);
      ASSERT_NEAR(by_input[i], slope, kTolerance) << "input " << i;
    }
  }

  // Values at least 0.1 from each other and 0.05 from zero, in random order.
  static std::vector<float> distinct_values(std::size_t count) {
    std::vector<float> values(count);
    const float middle = static_cast<float>(count) * 0.05F - 0.05F;  // count is even: no value is 0
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.1F - middle;
    Random random(23, 0);
    for (std::size_t i = count; i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
    return values;
  }
};
INSTANTIATE_TEST_SUITE_P(Here, LayerTest, ::testing::ValuesIn(backends_here()), case_name);

TEST_P(LayerTest, Convolution) {
  const ImageShape shape{3, 5, 4};
  check({LayerKind::kConvolution, 4}, shape, random_values(kBatch * size_of(shape), 24), 0.5F);
}

TEST_P(LayerTest, Dense) {
  const ImageShape shape{2, 3, 2};
  check({LayerKind::kDense, 5}, shape, random_values(kBatch * size_of(shape), 25), 0.5F);
}

TEST_P(LayerTest, MaxPool) {
  const ImageShape shape{2, 5, 6};
  check({LayerKind::kMaxPool, 0}, shape, distinct_values(kBatch * size_of(shape)), 0.03F);
}

TEST_P(LayerTest, Relu) {
  const ImageShape shape{2, 3, 3};
  check({LayerKind::kRelu, 0}, shape, distinct_values(kBatch * size_of(shape)), 0.03F);
}

}  // namespace
}  // namespace gradlane::train
