#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Splits the backward graph of each pipeline stage into the gradients of its inputs, for which the
/// previous stage waits, and those of its parameters, which fill idle time of a schedule: actions I
/// and W. The backward graph stays, for action B. Run after `split-backward`.
///
///   stage1.backward         gx = mm(gy, t(w))  gw = mm(t(x), gy)     -> gw, gx
///   stage1.backward_input   gx = mm(gy, t(w))                        -> gx
///   stage1.backward_weight  gw = mm(t(x), gy)                        -> gw
///
/// What both need is computed in the first: `kept 0`, `kept 1`, …; views, constants and size reads
/// are repeated instead. A stage without input gradients, the first, is not split. Results are
/// bitwise equal. Source: torchtitan's split_di_dw_graph (GraphPP).
class SplitWeightGradients final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "split each stage's backward into gradients of inputs and of parameters";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
