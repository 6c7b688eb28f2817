#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/pipeline/stage_modules.h"

namespace strata {

/// The stage that each node of a training's graph belongs to.
class StageAssignment {
 public:
  /// Of nodes that depend on no parameter and on no module of a stage, such as masks of positions:
  /// every stage that reads them computes them.
  static constexpr int64_t kEvery = -1;

  /// A node belongs to the stage of its module. A node of another module belongs to the last stage
  /// of its operands, a backward node and a sum of gradients to the first: gradients of one value
  /// are summed before they are sent.
  /// Errors: a parameter that is read by another stage, memory that several stages write.
  static Result<StageAssignment> Make(const Graph& graph, const StageModules& modules);

  int64_t of(NodeId node) const { return stages_[node]; }

 private:
  IdVector<NodeId, int64_t> stages_;
};

}  // namespace strata
