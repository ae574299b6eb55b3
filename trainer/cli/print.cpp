// SPDX-License-Identifier: Apache-2.0
#include "cli/print.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace gradlane::train {

namespace {

// Rows that the table has of one block at most.
constexpr std::uint32_t kRows = 10;

Status write_out(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int code = errno;
      std::array<char, 4096> path{};
      const ssize_t length = ::readlink("/proc/self/fd/1", path.data(), path.size() - 1);
      return system_error(
          "write to",
          length > 0 ? "standard output, " + std::string(path.data()) : std::string("standard output"), code);
    }
    done += static_cast<std::size_t>(count);
  }
  return {};
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

std::string hex(std::uint64_t value) { return format("%016llx", static_cast<unsigned long long>(value)); }

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

// What the result says about the whole training.
class Summary : public Observer {
 public:
  Status ready(const TrainingSetup& setup, const Model& /*model*/) override {
    setup_ = setup;
    return {};
  }
  Status progressed(std::uint32_t /*step*/, double /*loss*/) override { return {}; }
  Status block(const BlockResult& block) override {
    times_.insert(times_.end(), block.iteration_ms.begin(), block.iteration_ms.end());
    if (!first_loss_) first_loss_ = block.loss.front();
    last_loss_ = block.loss.back();
    return {};
  }
  Status evaluated(std::uint32_t /*step*/, const Evaluation& evaluation) override {
    evaluation_ = evaluation;
    return {};
  }

 protected:
  TrainingSetup setup_;
  std::vector<double> times_;
  std::optional<double> first_loss_;
  double last_loss_ = 0;
  std::optional<Evaluation> evaluation_;
};

using Json = nlohmann::ordered_json;

class JsonPrinter final : public Summary {
 public:
  Status listening(const Address& address) override {
    return print({{"event", "listening"}, {"address", address.text()}});
  }

  Status ready(const TrainingSetup& setup, const Model& model) override {
    if (Status status = Summary::ready(setup, model); !status) return status;
    Json layers = Json::array();
    for (std::size_t index = 0; index < model.layers(); ++index) {
      const LayerInfo& layer = model.layer(index);
      if (layer.parameters != 0) layers.push_back({{"name", layer.name}, {"parameters", layer.parameters}});
    }
    return print({{"event", "ready"},
                  {"workers", setup.workers},
                  {"schedule", setup.schedule},
                  {"lanes", setup.lanes},
                  {"slice_bytes", setup.slice_bytes},
                  {"batch", setup.batch},
                  {"device_ms", setup.device_ms},
                  {"parameters", setup.parameters},
                  {"layers", layers}});
  }

  Status block(const BlockResult& block) override {
    if (Status status = Summary::block(block); !status) return status;
    return print({{"event", "block"},
                  {"first_step", block.first_step},
                  {"steps", block.steps},
                  {"iteration_ms", block.iteration_ms},
                  {"iteration_ms_max", block.iteration_ms_max},
                  {"loss", block.loss},
                  {"accuracy", block.accuracy},
                  {"bytes", block.gradient_bytes + block.parameter_bytes},
                  {"gradient_bytes", block.gradient_bytes},
                  {"parameter_bytes", block.parameter_bytes},
                  {"device_ms", setup_.device_ms},
                  {"arithmetic_ms", block.arithmetic_ms},
                  {"overran", block.overran}});
  }

  Status evaluated(std::uint32_t step, const Evaluation& evaluation) override {
    if (Status status = Summary::evaluated(step, evaluation); !status) return status;
    return print({{"event", "evaluate"},
                  {"step", step},
                  {"test_accuracy", evaluation.accuracy},
                  {"test_loss", evaluation.loss_mean}});
  }

  Status checked(const CheckResult& check) override {
    return print({{"event", "check"},
                  {"step", check.step},
                  {"agree", check.agree},
                  {"fingerprint", hex(check.fingerprint)}});
  }

  Status finished(const TrainingResult& result) override {
    Json json = {{"event", "result"},
                 {"steps", result.steps},
                 {"iteration_ms_p50", percentile(times_, 0.5)},
                 {"iteration_ms_p99", percentile(times_, 0.99)},
                 {"checks", result.checks},
                 {"fingerprint", hex(result.fingerprint)}};
    if (first_loss_) {
      json["first_loss"] = *first_loss_;
      json["last_loss"] = last_loss_;
    }
    if (evaluation_) json["test_accuracy"] = evaluation_->accuracy;
    return print(json);
  }

 private:
  static Status print(const Json& json) { return write_out(json.dump() + "\n"); }
};

class TablePrinter final : public Summary {
 public:
  Status listening(const Address& address) override {
    return write_out("listening on " + address.text() + "\n");
  }

  Status ready(const TrainingSetup& setup, const Model& model) override {
    if (Status status = Summary::ready(setup, model); !status) return status;
    std::string text = format("%u workers, schedule %s, %u lane(s), %llu parameters in slices of %u bytes\n",
                              setup.workers, setup.schedule.c_str(), setup.lanes,
                              static_cast<unsigned long long>(total_parameters(model)), setup.slice_bytes);
    for (std::size_t index = 0; index < model.layers(); ++index) {
      const LayerInfo& layer = model.layer(index);
      if (layer.parameters == 0) continue;
      text += format("  %-10s %-24s %8zu parameters\n", layer.name.c_str(), layer.shape.c_str(),
                     layer.parameters);
    }
    text += "      steps       loss  accuracy  iteration ms  slowest rank\n";
    return write_out(text);
  }

  Status progressed(std::uint32_t step, double loss) override {
    if (::isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r  step %u, loss %.4f ", step + 1, loss);
    return {};
  }

  Status block(const BlockResult& block) override {
    if (Status status = Summary::block(block); !status) return status;
    if (::isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r%40s\r", "");
    std::string text;
    const std::uint32_t per_row = (block.steps + kRows - 1) / kRows;
    for (std::uint32_t first = 0; first < block.steps; first += per_row) {
      const std::uint32_t end = std::min(first + per_row, block.steps);
      const auto mean = [first, end](const std::vector<double>& values) {
        return std::accumulate(values.begin() + first, values.begin() + end, 0.0) / (end - first);
      };
      text += format("%5u-%-5u %10.4f %8.1f%% %13.2f %13.2f\n", block.first_step + first,
                     block.first_step + end - 1, mean(block.loss), 100 * mean(block.accuracy),
                     mean(block.iteration_ms), mean(block.iteration_ms_max));
    }
    if (setup_.device_ms > 0) {
      text += format("  paced for %.1f ms per iteration, of which %.1f%% were arithmetic; %u overran\n",
                     setup_.device_ms, 100 * block.arithmetic_ms / setup_.device_ms, block.overran);
    }
    return write_out(text);
  }

  Status evaluated(std::uint32_t step, const Evaluation& evaluation) override {
    if (Status status = Summary::evaluated(step, evaluation); !status) return status;
    return write_out(format("  after %u steps: test accuracy %.2f%%, test loss %.4f\n", step,
                            100 * evaluation.accuracy, evaluation.loss_mean));
  }

  Status checked(const CheckResult& check) override {
    return write_out(format("  after %u steps: the weights of all workers %s (%s)\n", check.step,
                            check.agree ? "are equal bit for bit" : "DIFFER",
                            hex(check.fingerprint).c_str()));
  }

  Status finished(const TrainingResult& result) override {
    return write_out(format("%u steps, iteration time p50 %.2f ms, p99 %.2f ms; last loss %.6f\n",
                            result.steps, percentile(times_, 0.5), percentile(times_, 0.99), last_loss_));
  }

 private:
  static std::uint64_t total_parameters(const Model& model) {
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < model.layers(); ++index) total += model.layer(index).parameters;
    return total;
  }
};

}  // namespace

std::unique_ptr<Observer> make_printer(bool json) {
  if (json) return std::make_unique<JsonPrinter>();
  return std::make_unique<TablePrinter>();
}

}  // namespace gradlane::train
