// SPDX-License-Identifier: Apache-2.0
// The other end of the control socket: what gradlane's commands use.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "core/result.hpp"
#include "daemon/protocol.hpp"

namespace gradlane {

// Sends one request to the socket at path and waits for its answer, at most for as long as patience. The
// error has the code ENOENT or ECONNREFUSED where no daemon listens, EACCES where we may not ask, ETIMEDOUT
// where it does not answer, and 0 where the daemon said no.
Result<nlohmann::json> ask(const std::string& path, const Request& request,
                           std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace gradlane
