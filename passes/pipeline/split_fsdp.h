#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Takes collectives of parameters and gradients out of what runs for each microbatch. A stage
/// whose ranks share parameters gets graphs for actions UNSHARD and REDUCE_GRAD, and one between
/// them. Run after `split-stages` and before `split-backward`; before both, `dedup-unshards` with
/// `across_phases` leaves one all-gather for each parameter.
///
///   stage1          g = all_gather(p)  w = wait(g)  y = mm(x, w)  …
///                   d = mm(t(x), gy)  r = reduce_scatter(d)  gp = wait(r)          -> y; gp
///   stage1.unshard  g = all_gather(p)  w = wait(g)                                 -> whole w
///   stage1.compute  y = mm(x, w)  d = mm(t(x), gy), reads whole w                  -> y; grad d
///   stage1.reduce   r = reduce_scatter(d)  gp = wait(r), reads grad d              -> grad gp
///
/// Casts before an all-gather are in `unshard`, casts before a reduction in `compute`: gradients of
/// microbatches are summed in the type that is reduced, once for all of them. A reduction in a type
/// narrower than fp32 stays in `compute`. Stages without such collectives are left as they are.
/// Errors: an all-gather of a parameter that is not read by its wait alone.
/// Source: torchtitan's split_fsdp_forward and split_fsdp_backward (GraphPP).
class SplitFsdp final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "gather parameters and reduce gradients of a stage in graphs of their own";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
