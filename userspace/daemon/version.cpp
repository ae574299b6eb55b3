// SPDX-License-Identifier: Apache-2.0
#include "daemon/version.hpp"

#include <bpf/libbpf.h>
#include <sys/utsname.h>

namespace gradlane {

std::string version_text() {
  utsname kernel{};
  uname(&kernel);
  return std::string("gradlane ") + GRADLANE_VERSION + "\nlibbpf " + std::to_string(libbpf_major_version()) +
         "." + std::to_string(libbpf_minor_version()) + "\nLinux " + kernel.release;
}

}  // namespace gradlane
