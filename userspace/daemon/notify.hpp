// SPDX-License-Identifier: Apache-2.0
// systemd's notification protocol, sd_notify(3), without its library.
#pragma once

#include <string>

namespace gradlane {

// Tells the service manager a state such as "READY=1". Without one ($NOTIFY_SOCKET is not set) nothing
// happens; nor does a failure matter, the manager has its own time limit.
void notify_manager(const std::string& state);

}  // namespace gradlane
