// SPDX-License-Identifier: Apache-2.0
// Logging of the programs: spdlog to standard error.
#pragma once

#include <string>

namespace gradlane {

// Sets spdlog's default logger: standard error, colour only on a terminal, level one of trace, debug, info,
// warn, error, off. Below systemd (JOURNAL_STREAM is set) lines carry no time, the journal has its own.
// What the levels mean: error: something asked for will not happen; warn: a feature falls back; info: life
// cycle and changes on the host; debug: for a bug report. False if the level has another name.
bool start_log(const std::string& program, const std::string& level);

}  // namespace gradlane
