#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Computes tagged forward results again in backward, so that their memory is free in between.
///
///   before  a = clone(i) {MUST_RECOMPUTE}  e = relu(a) {MUST_RECOMPUTE}  …  g = mul(t, e)
///   after   …  a_recomputed = clone(i)  e_recomputed = relu(a_recomputed)  g = mul(t,
///   e_recomputed)
///
/// Tags are those of `tag-memory` (passes/memory/tags.h). A tagged node that backward needs is
/// copied once, before the first backward node that needs it or a copy that reads it; later nodes
/// share the copy. Copies stand in the order of forward, with the writes to memory that they need.
/// Originals that nothing reads any more are erased. Copies have phase backward, an attribute
/// `recomputed_from`, and come from their original in the provenance. Results are bitwise equal.
///
/// Copies of readers of an offloaded result read what came back from the host (passes/memory/
/// offload.h). If that comes later than the copy, it is moved before it.
///
/// Backward of the loss and the output layer (modules `loss` and `lm_head`) keeps the originals, up
/// to the first backward node of another module after their last forward node. Cost is linear in
/// nodes and uses. Errors: tagged nodes that draw random numbers, or read memory that is written
/// later; more than one region of backward nodes that needs copies. Source: torchtitan's
/// selective_activation_remat_pass.
class Recompute final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "compute tagged forward results again in backward instead of saving them";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
