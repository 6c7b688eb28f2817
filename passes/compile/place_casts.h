#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Moves casts to what they serve: that of an input to its first reader, that which is only an
/// output to what it casts.
///
///   before  h = cast(w)  …  y = mm(x, h)  g = mm(t, d)  …  f = cast(g)  output([f])
///   after   …  h = cast(w)  y = mm(x, h)  g = mm(t, d)  f = cast(g)  …  output([f])
///
/// Autograd casts the parameters of mixed precision first and their gradients last: by then caches
/// hold them no more, and all gradients live in both types at once. Values are the same. Memory
/// that the graph writes to is left alone.
class PlaceCasts final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "move casts of inputs and outputs next to their readers and operands";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
