#pragma once
#include <string_view>

#include "base/result.h"

namespace strata {

/// The Error of a body that has no kernel (kUnsupported).
inline Error NoKernel(std::string_view why) {
  return Error(ErrorCode::kUnsupported, "no kernel: {}", why);
}

}  // namespace strata
