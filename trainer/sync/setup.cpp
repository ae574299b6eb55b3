// SPDX-License-Identifier: Apache-2.0
#include "sync/setup.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "schedule/schedule.hpp"
#include "sync/wire.hpp"

namespace gradlane::train {

namespace {

constexpr std::uint32_t kMostWorkers = 1024;

using Json = nlohmann::json;

// Takes one key out of an object; remembers the first that is missing or of the wrong type.
class Taker {
 public:
  explicit Taker(Json object) : object_(std::move(object)) {}

  void take(const char* key, std::string& value) {
    if (const Json* found = find(key, [](const Json& json) { return json.is_string(); }))
      value = found->get<std::string>();
  }
  void take(const char* key, double& value) {
    if (const Json* found = find(key, [](const Json& json) { return json.is_number(); }))
      value = found->get<double>();
  }
  template <typename T>
  void take(const char* key, T& value) {
    const auto fits = [](const Json& json) {
      return json.is_number_unsigned() && json.get<std::uint64_t>() <= std::numeric_limits<T>::max();
    };
    if (const Json* found = find(key, fits)) value = found->get<T>();
  }
  template <typename T, std::size_t N>
  void take(const char* key, std::array<T, N>& values) {
    const auto fits = [](const Json& json) {
      if (!json.is_array() || json.size() != N) return false;
      for (const Json& item : json) {
        if (!item.is_number_unsigned() || item.get<std::uint64_t>() > std::numeric_limits<T>::max())
          return false;
      }
      return true;
    };
    if (const Json* found = find(key, fits)) {
      for (std::size_t index = 0; index < N; ++index) values[index] = (*found)[index].get<T>();
    }
  }

  Status end() const {
    if (!wrong_.empty()) return make_error("the server's setup has no usable \"" + wrong_ + "\"");
    if (taken_ != object_.size())
      return make_error("the server's setup has keys that this version does not know");
    return {};
  }

 private:
  template <typename Fits>
  const Json* find(const char* key, Fits fits) {
    const auto found = object_.find(key);
    if (found != object_.end() && fits(*found)) {
      ++taken_;
      return &*found;
    }
    if (wrong_.empty()) wrong_ = key;
    return nullptr;
  }

  Json object_;
  std::size_t taken_ = 0;
  std::string wrong_;
};

}  // namespace

Status check_setup(const TrainingSetup& setup) {
  if (setup.workers < 1 || setup.workers > kMostWorkers)
    return make_error("--workers must be 1 to " + std::to_string(kMostWorkers));
  if (auto schedule = find_schedule(setup.schedule); !schedule)
    return make_error("--schedule: " + schedule.error().message);
  if (setup.lanes != 1 && setup.lanes != GL_LANES)
    return make_error("--lanes must be 1 or " + std::to_string(int{GL_LANES}));
  if (setup.slice_bytes < sizeof(float) || setup.slice_bytes > kMaxSliceBytes)
    return make_error("--slice must be 4 to " + std::to_string(kMaxSliceBytes) + " bytes");
  for (const std::uint8_t tag : setup.tags) {
    if (tag >= GL_TAGS) return make_error("a lane's tag must be 0 to " + std::to_string(GL_TAGS - 1));
  }
  if (setup.batch < 1 || setup.batch % setup.workers != 0) {
    return make_error("--batch counts the samples of all workers: it must be a multiple of --workers (" +
                      std::to_string(setup.workers) + ")");
  }
  if (!(setup.learning_rate > 0) || !std::isfinite(setup.learning_rate))
    return make_error("--learning-rate must be above 0");
  if (!(setup.momentum >= 0 && setup.momentum < 1))
    return make_error("--momentum must be at least 0 and below 1");
  if (!(setup.device_ms >= 0 && setup.device_ms <= 60000))
    return make_error("--device-ms must be 0 (off) to 60000 milliseconds");
  return {};
}

std::string setup_to_json(const TrainingSetup& setup) {
  return Json{{"workers", setup.workers},
              {"schedule", setup.schedule},
              {"lanes", setup.lanes},
              {"slice_bytes", setup.slice_bytes},
              {"tags", setup.tags},
              {"congestion", setup.congestion},
              {"spec", setup.spec},
              {"seed", setup.seed},
              {"batch", setup.batch},
              {"learning_rate", setup.learning_rate},
              {"momentum", setup.momentum},
              {"device_ms", setup.device_ms},
              {"check_every", setup.check_every},
              {"parameters", setup.parameters}}
      .dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<TrainingSetup> setup_from_json(std::string_view text) {
  Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return make_error("the server's setup is no JSON object");
  Taker taker(std::move(object));
  TrainingSetup setup;
  taker.take("workers", setup.workers);
  taker.take("schedule", setup.schedule);
  taker.take("lanes", setup.lanes);
  taker.take("slice_bytes", setup.slice_bytes);
  taker.take("tags", setup.tags);
  taker.take("congestion", setup.congestion);
  taker.take("spec", setup.spec);
  taker.take("seed", setup.seed);
  taker.take("batch", setup.batch);
  taker.take("learning_rate", setup.learning_rate);
  taker.take("momentum", setup.momentum);
  taker.take("device_ms", setup.device_ms);
  taker.take("check_every", setup.check_every);
  taker.take("parameters", setup.parameters);
  if (Status status = taker.end(); !status) return status.error();
  if (Status status = check_setup(setup); !status)
    return make_error("the server's setup cannot be used: " + status.error().message);
  return setup;
}

}  // namespace gradlane::train
