#pragma once
#include <span>

#include "base/result.h"
#include "ir/ids.h"
#include "ir/module.h"

namespace strata::prove {

/// Graphs of AOTAutograd that belong together.
struct GraphPiece {
  GraphId forward;   ///< or that of inference
  GraphId backward;  ///< none: there is no backward graph
};

/// Joins the graphs of a compilation that Dynamo cut at the ends of DDP's buckets. `split` calls
/// the parts as `submod_0`, `submod_1`, …, which `pieces` has in order. Gradients of a value that
/// several parts read are added, as autograd adds them. Nodes have the names of the parts' before
/// them: `submod_1_mm`. The new graphs are added to the module.
///
/// Errors: graphs of another form; a part that returns what code outside of the graphs makes.
Result<GraphPiece> JoinPieces(Module& module, GraphId split, std::span<const GraphPiece> pieces);

}  // namespace strata::prove
