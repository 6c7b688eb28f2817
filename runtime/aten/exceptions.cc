#include "runtime/aten/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include <c10/util/Exception.h>

namespace strata {

void RethrowPlainly() {
  try {
    throw;
  } catch (const c10::Error& error) {
    const std::string_view why = error.what_without_backtrace();
    if (why.find("allocate memory") != std::string_view::npos) throw std::bad_alloc();
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace strata
