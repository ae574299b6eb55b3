// SPDX-License-Identifier: Apache-2.0
// Errors as values: Result<T> is either a T or an Error; exceptions are for bugs only.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gradlane {

// Why an operation failed, in the parts that a caller may want to look at.
struct Error {
  // One sentence for a person: what failed and what to do about it.
  std::string message;
  // The errno behind it, 0 where there is none.
  int code = 0;
};

// An error of our own making: no errno behind it.
inline Error make_error(std::string message) { return Error{std::move(message), 0}; }

// "cannot OPERATION OBJECT: strerror(code)"; code is an errno, its sign does not matter.
inline Error system_error(const std::string& operation, const std::string& object, int code) {
  const int positive = code < 0 ? -code : code;
  return Error{"cannot " + operation + " " + object + ": " + std::strerror(positive), positive};
}

// The value of an operation, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Success, or the reason why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  explicit operator bool() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace gradlane
