#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "passes/core/pass.h"
#include "passes/pipeline/slots.h"

namespace strata {

/// Splits the joint graph of each pipeline stage into forward and backward, which run at different
/// times of a schedule: `stage0`, or after `split-fsdp` `stage0.compute`, into `stage0.forward` and
/// `stage0.backward`. The joint graph stays.
///
///   stage1           y = mm(x, w)  gx = mm(gy, t(w))  gw = mm(t(x), gy)    -> y; gw, gx
///   stage1.forward   y = mm(x, w)                                          -> y
///   stage1.backward  gx = mm(gy, t(w))  gw = mm(t(x), gy), reads x, w, gy  -> gw, gx
///
/// Forward computes what the forward outputs (loss, extra outputs, activations) need, and every
/// node of phase forward or loss: a chunked loss differentiates its logits there. Forward results
/// that backward reads are outputs of forward and inputs of backward, `saved 0`, `saved 1`, …;
/// backward reads inputs of the stage itself, and repeats views, constants and size reads instead
/// of saving them. Writes to memory before the last forward output stay in forward. Copies come
/// from the joint graph's nodes in the provenance. Cost is linear in nodes and uses.
///
/// Errors: forward outputs that depend on gradients of the next stage, forward writes to these.
/// Source: torchtitan's partition_joint_graph (GraphPP).
class SplitBackward final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "split the joint graph of each stage into forward and backward";

  Result<Changed> Run(Module& module) override;
};

/// Which outputs of a joint graph are forward, and which inputs are of backward alone.
struct JointSignature {
  std::vector<size_t> forward_outputs;  ///< positions; others are backward's
  std::vector<size_t> backward_inputs;  ///< positions of placeholders that only backward may read
  StageSlot::Kind saved = StageSlot::Kind::kSaved;  ///< of what forward leaves for backward
};

/// Adds graphs `forward` and `backward` to the module of `joint`, which has slots.
/// Errors: as above; a signature that `joint` does not have.
Status SplitJoint(Module& module, const Graph& joint, const JointSignature& signature,
                  std::string_view forward, std::string_view backward);

}  // namespace strata
