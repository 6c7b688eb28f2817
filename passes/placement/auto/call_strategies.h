#pragma once
#include <span>
#include <vector>

#include "ir/graph.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/placement.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {

/// One way to run a call, or to hold an input, on all axes of a mesh.
struct CallStrategy {
  std::vector<Placements> operands, results;
  double compute_us = 0;
};

/// What the producers of a call's operands offer beyond shards and whole values.
struct OfferedPlacements {
  std::vector<Placement> partial;  ///< kinds of partial placements, of any operand
  std::vector<Placement> strided;  ///< strided shards of operand 0
  std::vector<Placement> uneven;   ///< shards of operand 0 that its ranks do not divide evenly
  std::vector<Placement> rows;     ///< rows in the order of experts, of any operand

  /// What the producer of an operand may give. `type`: of the operand, null: no tensor. `is_first`:
  /// it is operand 0.
  void Add(const Module& module, const Type* type, const Placements& produced, const Mesh& mesh,
           bool is_first);
};

/// Every strategy of a call that its rule allows on the mesh of `model`: the strategies of each
/// axis (passes/placement/strategies.h), combined. The dimensions of all operands and results are
/// divided evenly, into contiguous chunks, or in rows in the order of experts
/// (ir/row_placement.h): by token on any axis, by expert on all axes of `ep` together or on none.
/// A cast may have a dimension that one axis divides unevenly. Of strategies with the same
/// placements, one stays.
std::vector<CallStrategy> CallStrategies(Graph& graph, NodeId node, const ShardingRule& rule,
                                         const CostModel& model, const OfferedPlacements& offered);

/// Every way to hold a tensor without summands: whole, or cut along dimensions that the axes divide
/// evenly. Where several axes cut one dimension, also with the outermost of them inside the others,
/// which one collective gathers. A dimension with an element for each rank may be cut unevenly by
/// one axis alone: its last ranks then have zeros after what they hold.
std::vector<Placements> HeldPlacements(const Module& module, const Type& type, const Mesh& mesh);
/// Whether `axis` cuts its dimension of `type` into parts of different sizes.
bool IsUneven(const Module& module, const Type& type, const Placements& placements, size_t axis,
              const Mesh& mesh);

}  // namespace strata
