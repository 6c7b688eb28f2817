#pragma once
#include <utility>

#include <c10/util/Exception.h>

#include "base/result.h"

namespace strata {

/// Throws what is being handled again, as programs without LibTorch know it: what LibTorch throws
/// as std::bad_alloc where memory is missing, else as an std::exception without the stack trace in
/// its message. REQUIRES: called in a handler.
[[noreturn]] void RethrowPlainly();

/// The value of a result, inside of what LibTorch calls. Throws c10::Error with its message.
template <class T>
T OrThrow(Result<T> result) {
  TORCH_CHECK(result.has_value(), result.has_value() ? "" : result.error().message());
  return *std::move(result);
}

}  // namespace strata
