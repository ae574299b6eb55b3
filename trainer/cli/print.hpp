// SPDX-License-Identifier: Apache-2.0
// What the program writes to standard output: JSON, one object per line, or tables for people.
#pragma once

#include <memory>

#include "sync/observer.hpp"

namespace gradlane::train {

// JSON: each object has an "event", one of listening, ready, block, evaluate, check, result; numbers are
// written such that reading them gives the same bits, so that losses can be compared exactly. Otherwise
// tables.
std::unique_ptr<Observer> make_printer(bool json);

}  // namespace gradlane::train
