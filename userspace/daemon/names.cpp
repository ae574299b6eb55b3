// SPDX-License-Identifier: Apache-2.0
#include "daemon/names.hpp"

#include <algorithm>

#include "gradlane/abi/core.h"

namespace gradlane {
namespace {

constexpr std::size_t longest_name = 64;

// Not isalnum: that follows the locale.
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Status check(const std::string& what, const std::string& name) {
  const bool valid = !name.empty() && name.size() <= longest_name && is_letter_or_digit(name.front()) &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
                     });
  if (valid) return {};
  return make_error("\"" + name.substr(0, longest_name) + "\" cannot be the name of " + what +
                    ": use 1 to 64 letters, digits, \".\", \"_\" or \"-\", beginning with a letter or digit");
}

}  // namespace

Status check_job_name(const std::string& name) { return check("a job", name); }

Status check_instance_name(const std::string& name) {
  const bool reserved = name == GL_PIN_KERNEL || name.ends_with(".service") || name.ends_with(".scope") ||
                        name.ends_with(".slice");
  if (reserved) {
    return make_error("\"" + name + "\" cannot be the name of an instance: it is reserved, choose another");
  }
  return check("an instance", name);
}

}  // namespace gradlane
