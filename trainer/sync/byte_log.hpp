// SPDX-License-Identifier: Apache-2.0
// The byte log: what each connection carried, one JSON object per line, so that a packet capture can be
// joined to it by address and port.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "sync/connection.hpp"

namespace gradlane::train {

// One connection, for the log. The keys are, in this order: role ("worker" or "server"), rank, lane, tag
// (SO_PRIORITY, 0: untagged), local, local_port, remote, remote_port (this host's side and the other one),
// content ("gradients" or "parameters"), slice_bytes (sent in messages of that content, with their headers),
// slice_header_bytes (of these the headers), control_bytes (all other messages, with their headers). All
// count what was handed to the kernel.
std::string byte_log_line(const Connection& connection, const std::string& role, std::uint32_t rank);

// Writes lines to a file, replacing it. The error names the file.
Status write_lines(const std::string& path, const std::vector<std::string>& lines);

}  // namespace gradlane::train
