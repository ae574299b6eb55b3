// SPDX-License-Identifier: Apache-2.0
#include "sync/statistics.hpp"

#include <algorithm>

namespace gradlane::train {

BlockCollector::BlockCollector(std::size_t ranks, std::uint32_t first_step, std::uint32_t steps)
    : first_step_(first_step), steps_(steps), reports_(ranks) {}

void BlockCollector::add(std::size_t rank, const StepReport& report) { reports_[rank].push_back(report); }

std::uint32_t BlockCollector::next_step(std::size_t rank) const {
  return first_step_ + static_cast<std::uint32_t>(reports_[rank].size());
}

std::uint32_t BlockCollector::complete_steps() const {
  std::size_t least = steps_;
  for (const auto& reports : reports_) least = std::min(least, reports.size());
  return static_cast<std::uint32_t>(least);
}

double BlockCollector::loss(std::uint32_t index) const {
  double sum = 0;
  std::uint64_t samples = 0;
  for (const auto& reports : reports_) {
    sum += reports[index].loss_sum;
    samples += reports[index].samples;
  }
  return sum / static_cast<double>(samples);
}

BlockResult BlockCollector::result() const {
  BlockResult result;
  result.first_step = first_step_;
  result.steps = steps_;
  double arithmetic_ns = 0;
  for (std::uint32_t index = 0; index < steps_; ++index) {
    std::vector<double> times;
    double correct = 0;
    double samples = 0;
    for (const auto& reports : reports_) {
      const StepReport& report = reports[index];
      times.push_back(static_cast<double>(report.iteration_ns) / 1e6);
      correct += report.correct;
      samples += report.samples;
      arithmetic_ns += static_cast<double>(report.arithmetic_ns);
      result.overran += report.overran ? 1 : 0;
    }
    std::sort(times.begin(), times.end());
    const std::size_t middle = times.size() / 2;
    result.iteration_ms.push_back(times.size() % 2 != 0 ? times[middle]
                                                        : (times[middle - 1] + times[middle]) / 2);
    result.iteration_ms_max.push_back(times.back());
    result.loss.push_back(loss(index));
    result.accuracy.push_back(correct / samples);
  }
  result.arithmetic_ms =
      arithmetic_ns / 1e6 / static_cast<double>(steps_) / static_cast<double>(reports_.size());
  return result;
}

}  // namespace gradlane::train
