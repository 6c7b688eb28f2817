#pragma once

namespace strata {

/// Throws what is being handled again, as programs without LibTorch know it: what LibTorch throws
/// as std::bad_alloc where memory is missing, else as an std::exception without the stack trace in
/// its message. REQUIRES: called in a handler.
[[noreturn]] void RethrowPlainly();

}  // namespace strata
