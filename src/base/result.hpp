#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

namespace ddprof {

// What a caller may branch on. Everything else about a failure is in the sentence.
enum class ErrorCode {
  failed,             // no special handling makes sense
  invalid_argument,   // the user said something that cannot be
  not_found,          // a file, process or event that does not exist
  permission_denied,  // the kernel or a peer refuses; the hint says what would allow it
  unsupported,        // this kernel, machine or version cannot do it
  exhausted,          // out of memory, descriptors, locked memory or disk space
  corrupt,            // foreign bytes that are not what they claim to be
};

// A failure is said once, by the lowest layer that knows, as "operation object: reason". The hint says
// what to do about it, if that is known, and is printed under the message by the command line.
struct Error {
  ErrorCode code = ErrorCode::failed;
  std::string message;
  std::string hint = {};
};

template <typename... Args>
[[nodiscard]] Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

// "open /proc/1/mem: Permission denied", with the code that fits the errno.
[[nodiscard]] Error errno_error(int error_number, std::string operation);

[[nodiscard]] inline Error with_hint(Error error, std::string hint) {
  error.hint = std::move(hint);
  return error;
}

// Either a value or an Error; cannot be dropped by accident.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] T value_or(T fallback) && {
    return ok() ? std::get<0>(std::move(state_)) : std::move(fallback);
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return error_.index() == 0; }
  explicit operator bool() const { return ok(); }
  void value() const {}
  [[nodiscard]] Error& error() & { return std::get<1>(error_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(error_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(error_)); }

 private:
  std::variant<std::monostate, Error> error_;
};

}  // namespace ddprof

// Unwraps a Result or returns its error from the enclosing function: `auto file = TRY(open(path));`
#define TRY(expression)                                                       \
  __extension__({                                                             \
    auto&& ddprof_try_result = (expression);                                  \
    if (!ddprof_try_result.ok()) return std::move(ddprof_try_result).error(); \
    std::move(ddprof_try_result).value();                                     \
  })
