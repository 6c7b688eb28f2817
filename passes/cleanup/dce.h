#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Erases nodes whose results have no users and that have no effects.
///
///   before  c = le(x, 5)  a = all(c)  _assert_async(a)  z = add(x, x)  y = relu(x)  output(y)
///   after   y = relu(x)  output(y)
///
/// `IsImpure` (ir/ops.h) decides what must stay: writes, effects, random numbers, collectives.
/// Asynchronous asserts go all the same: they would keep their conditions alive. Of a tuple, unused
/// elements lose their names, as FX loses `getitem` nodes. Placeholders stay. One sweep from the
/// last node to the first; bodies of higher-order nodes are not visited.
/// Source: torchtitan's eliminate_dead_code_pass, torch.fx Graph.eliminate_dead_code.
class DeadCodeElimination final : public Pass {
 public:
  static constexpr std::string_view kSummary = "erase nodes without users and effects";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
