// SPDX-License-Identifier: Apache-2.0
#include "sync/step.hpp"

#include <time.h>

#include <cstring>

namespace gradlane::train {

namespace {

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

std::vector<std::size_t> layer_parameters(const Model& model) {
  std::vector<std::size_t> counts(model.layers());
  for (std::size_t layer = 0; layer < counts.size(); ++layer) counts[layer] = model.layer(layer).parameters;
  return counts;
}

std::vector<double> layer_multiply_adds(const Model& model) {
  std::vector<double> counts(model.layers());
  for (std::size_t layer = 0; layer < counts.size(); ++layer)
    counts[layer] = model.layer(layer).multiply_adds;
  return counts;
}

std::uint64_t fingerprint(Model& model) {
  // FNV-1a over 32-bit words.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    for (const float value : model.parameters(layer)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3U;
    }
  }
  return hash;
}

bool run_step(Model& model, Pacer& pacer, const StepHooks& hooks, StepReport& report) {
  std::uint64_t arithmetic = 0;
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    Clock::time_point complete;
    if (!hooks.wait_for_parameters(layer, complete)) return false;
    pacer.wait_until(complete);
    const std::uint64_t begin = thread_cpu_ns();
    model.forward(layer);
    arithmetic += thread_cpu_ns() - begin;
    pacer.forward_done(layer);
  }
  report.loss_sum = model.loss_sum();
  report.correct = static_cast<std::uint32_t>(model.correct());
  hooks.between_passes();
  for (std::size_t layer = model.layers(); layer-- > 0;) {
    const std::uint64_t begin = thread_cpu_ns();
    model.backward(layer);
    arithmetic += thread_cpu_ns() - begin;
    pacer.backward_done(layer);
    hooks.gradient_ready(layer);
  }
  report.arithmetic_ns = arithmetic;
  report.overran = pacer.end_iteration();
  return true;
}

}  // namespace gradlane::train
