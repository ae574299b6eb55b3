// SPDX-License-Identifier: Apache-2.0
// The settings of a training, which the server tells its workers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "gradlane/abi/lane.h"

namespace gradlane::train {

// What the server decides and each worker needs.
struct TrainingSetup {
  std::uint32_t workers = 1;          // 1..1024
  std::string schedule = "wfbp";      // see schedule.hpp
  std::uint32_t lanes = 1;            // connections per worker: 1 or GL_LANES
  std::uint32_t slice_bytes = 16384;  // the most bytes of a slice: 4..kMaxSliceBytes
  // SO_PRIORITY of each lane's sockets on both sides, 0..6; 0 leaves the socket untagged. Not used with one
  // lane.
  std::array<std::uint8_t, GL_LANES> tags = {6, 4, 2, 1};
  std::string congestion;         // TCP congestion control of both sides; empty: the system's
  std::string spec;               // the layers, see model.hpp; empty: the default network
  std::uint64_t seed = 1;         // of initial parameters and batches
  std::uint32_t batch = 128;      // samples per iteration over all workers; a multiple of workers
  double learning_rate = 0.1;     // above 0
  double momentum = 0.9;          // 0..1, 1 excluded
  double device_ms = 0;           // see pacer.hpp; 0: no pace
  std::uint32_t check_every = 0;  // steps between two checks of all workers' weights; 0: none
  std::uint64_t parameters = 0;   // floats of the server's model, for a check

  std::uint32_t samples_per_worker() const { return batch / workers; }
};

// Names the option and what it may be if a value is out of range or two do not fit together.
Status check_setup(const TrainingSetup& setup);

// The payload of a setup message; the second refuses unknown or missing keys and whatever check_setup
// refuses.
std::string setup_to_json(const TrainingSetup& setup);
Result<TrainingSetup> setup_from_json(std::string_view text);

}  // namespace gradlane::train
