#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Makes symbolic sizes the numbers that they were when the program was traced:
///
///   before  x = placeholder : f32[s0, 3]   h = split_with_sizes(x, [s0//2, s0//2], 0)   (s0: 4)
///   after   x = placeholder : f32[4, 3]    h = split_with_sizes(x, [2, 2], 0)
///
/// All symbols of inputs that have a hint go: from types, arguments and the bodies of higher-order
/// nodes. Integers that nodes computed become literals, and the nodes go. Data-dependent sizes
/// stay. A graph without such inputs stays as it is.
/// Errors: an assertion that does not hold for these numbers.
/// Source: torchtitan's concretization of chunk symbols.
class Concretize final : public Pass {
 public:
  static constexpr std::string_view kSummary = "make symbolic sizes the numbers of the trace";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
