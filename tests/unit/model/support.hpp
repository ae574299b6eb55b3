// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of backends and networks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "data/random.hpp"

namespace gradlane::train {

// The backends that this machine can run: both instruction sets of the CPU, and CUDA where a device answers.
struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

// What GoogleTest shows of it.
inline void PrintTo(const BackendCase& backend_case, std::ostream* out) { *out << backend_case.name; }

inline std::vector<BackendCase> backends_here() {
  std::vector<BackendCase> cases{{"Baseline", [] { return make_cpu_backend(CpuLevel::kBaseline); }},
                                 {"Best", [] { return make_cpu_backend(CpuLevel::kBest); }}};
  if (make_backend("cuda")) {
    cases.push_back({"Cuda", [] { return std::move(*make_backend("cuda")); }});
  }
  return cases;
}

inline std::string case_name(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

// Gives each test a backend of its own.
class BackendTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  Backend& backend() { return *backend_; }

  // A device's copy of the values.
  template <typename T>
  Buffer<T> put(const std::vector<T>& values) {
    Buffer<T> buffer(backend(), values.size());
    backend().upload(buffer.get(), values.data(), values.size() * sizeof(T));
    return buffer;
  }
  std::vector<float> get(const Buffer<float>& buffer, std::size_t count) {
    std::vector<float> values(count);
    backend().download(values.data(), buffer.get(), count * sizeof(float));
    EXPECT_TRUE(backend().status());
    return values;
  }

 private:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

// Sizes of arrays, without the overflow of int.
inline std::size_t product(std::initializer_list<int> sizes) {
  std::size_t result = 1;
  for (const int size : sizes) result *= static_cast<std::size_t>(size);
  return result;
}

// Values in [-1, 1).
inline std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed, 0);
  std::vector<float> values(count);
  for (float& value : values) value = random.symmetric();
  return values;
}

inline void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                        double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i],
                tolerance * std::max(1.0, std::fabs(static_cast<double>(expected[i]))))
        << "at " << i;
  }
}

}  // namespace gradlane::train
