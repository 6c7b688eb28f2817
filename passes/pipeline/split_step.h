#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Writes forward and backward of the step as graphs of their own, `step.forward` and
/// `step.backward`. The graph `step` stays, and is what a training runs.
///
///   step           y = mm(x, w)  loss = f(y)  gy = …  gw = mm(t(x), gy)   -> loss, gw
///   step.forward   y = mm(x, w)  loss = f(y)                              -> loss, y
///   step.backward  gy = …  gw = mm(t(x), gy), reads x and y               -> gw
///
/// Outputs of forward nodes are outputs of forward, in order, and results that backward reads
/// follow them. Inputs and outputs have slots (passes/pipeline/slots.h): `saved 0`, `saved 1`, …
/// are outputs of one graph and inputs of the other. After `tag-memory` and `recompute` these are
/// what the policy saves, and backward has the copies: with `min_cut` the fewest bytes. Copies come
/// from nodes of the step in the provenance. Modules without such a graph, or with one that has no
/// backward, are left alone. Cost is linear in nodes and uses. Errors: those of SplitJoint.
/// Source: PyTorch's min-cut partitioner, which writes such graphs.
class SplitStep final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "write forward and backward of the step as separate graphs";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
