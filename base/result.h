#pragma once
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace strata {

/// The kind of an Error. Programs branch on the code, people read the message.
enum class ErrorCode : uint8_t {
  kInvalid,      ///< the input is wrong: a file, an option, a text
  kNotFound,     ///< something named does not exist
  kCorrupt,      ///< stored bytes contradict their checksum or format
  kUnsupported,  ///< right, but not something this build or version can do
  kIo,           ///< the operating system refused a read or a write
  kInternal,     ///< a broken internal invariant
  kAmbiguous,    ///< a name stands for several things
};

/// A message that a user can act on: `<what>: <where>: <what to do>`. Further lines may show the
/// position (source line and caret). The program adds the prefix `strata: error: `.
class Error {
 public:
  template <class... Args>
  explicit Error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args)
      : code_(code), message_(fmt::format(format, std::forward<Args>(args)...)) {}
  template <class... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : Error(ErrorCode::kInvalid, format, std::forward<Args>(args)...) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error with `context: ` in front: callers add where, callees know what.
  Error In(std::string_view context) && {
    message_.insert(0, fmt::format("{}: ", context));
    return std::move(*this);
  }

 private:
  ErrorCode code_;
  std::string message_;
};

/// A value or an Error. Members are named as those of std::expected, so that a later move to it is
/// a using-declaration.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  /// REQUIRES: has_value().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// REQUIRES: !has_value().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

/// The successful Status.
inline Status Ok() {
  return {};
}

namespace internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     const std::string& detail) {
  std::fprintf(stderr, "strata: internal error: %s:%d: %s%s%s\n", file, line, condition,
               detail.empty() ? "" : ": ", detail.c_str());
  std::abort();
}
}  // namespace internal

}  // namespace strata

#define STRATA_CONCAT_IMPL(a, b) a##b
#define STRATA_CONCAT(a, b) STRATA_CONCAT_IMPL(a, b)

/// `STRATA_TRY(Graph graph, Parse(text));` declares or assigns, or returns the error.
#define STRATA_TRY(target, ...) \
  STRATA_TRY_IMPL(STRATA_CONCAT(strata_result_, __LINE__), target, __VA_ARGS__)
#define STRATA_TRY_IMPL(result, target, ...)     \
  auto result = (__VA_ARGS__);                   \
  if (!result) return std::move(result).error(); \
  target = std::move(result).value()

/// `STRATA_RETURN_IF_ERROR(Write(path));` returns the error of a Status.
#define STRATA_RETURN_IF_ERROR(...)                         \
  do {                                                      \
    if (auto strata_status = (__VA_ARGS__); !strata_status) \
      return std::move(strata_status).error();              \
  } while (false)

/// Ends the program when an internal invariant is broken. Never triggered by a user's input.
#define STRATA_CHECK(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition))                                                                     \
      ::strata::internal::CheckFailed(__FILE__, __LINE__, #condition,                     \
                                      std::string{__VA_OPT__(fmt::format(__VA_ARGS__))}); \
  } while (false)
