#pragma once
#include <cstdint>
#include <set>

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
  ///
  /// A parameter that several stages read (tied weights) is shared. It belongs to the first of
  /// them, with the sum of its gradients and what reduces that; casts and gathers of it are of
  /// every stage that reads them. Errors: another input that is read by another stage, memory that
  /// several stages write.
  static Result<StageAssignment> Make(const Graph& graph, const StageModules& modules);

  int64_t of(NodeId node) const { return stages_[node]; }
  /// Of a parameter: several stages read it.
  bool is_shared(NodeId placeholder) const { return shared_.contains(placeholder); }

 private:
  void ShareParameters(const Graph& graph);

  IdVector<NodeId, int64_t> stages_;
  std::set<NodeId> shared_;
};

}  // namespace strata
