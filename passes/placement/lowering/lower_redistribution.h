#pragma once
#include <vector>

#include "base/result.h"
#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// Nodes at the cursor of `rewriter` that make the local part under `to` of the local part `value`,
/// whose type is plain and whose placements in the whole tensor, of sizes and strides as `whole`,
/// are `from`. Dimensions keep their order in memory. `ancestor` is the node that they are made
/// from. Source: sequences of torch.distributed.tensor and of SimpleFSDP. Errors: blocks, or
/// symbolic sizes, that the ranks of an axis cannot divide evenly.
Result<ValueId> LowerRedistribution(Rewriter& rewriter, ValueId value, const Type& whole,
                                    const Placements& from, const Placements& to, const Mesh& mesh,
                                    NodeId ancestor);

}  // namespace strata
