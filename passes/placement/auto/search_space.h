#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/auto/call_strategies.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/costs/twins.h"
#include "passes/placement/plan.h"
#include "passes/placement/reshard.h"
#include "passes/placement/solver/pairwise.h"

namespace strata {

struct SpaceOptions {
  Reshard reshard = Reshard::kBlocks;
  /// Layers that are alike get one strategy.
  bool has_twins = true;
  int64_t split_layer = 0;           ///< layers before it get other strategies than those after it
  std::set<NodeId> recomputed = {};  ///< forward nodes that backward computes again
  /// How often a step runs everything but what it does once with parameters and gradients.
  int64_t rounds = 1;
};

/// What a search for placements of a step chooses among, and what it costs.
///
/// A variable is a call, an input, or the copies of a value that several readers share: a value
/// that is redistributed is so once, and each reader takes it from there. An edge is an operand: it
/// costs the redistribution from the placement of the value to that which the reader wants. No
/// value becomes partial by a redistribution. The cost of all is that of the graph that `place`
/// makes, in µs.
struct SearchSpace {
  enum class Kind : uint8_t { kInput, kCall, kShared };
  struct Variable {
    Kind kind = Kind::kCall;
    NodeId node;    ///< the first of the nodes that are alike; of kShared: the producer
    ValueId value;  ///< kInput, kShared
    std::vector<CallStrategy> strategies;
    int64_t count = 0;  ///< nodes
    int64_t runs = 0;   ///< of these nodes in a step: twice of those that are recomputed

    /// What a result has at a choice.
    const Placements& Produced(size_t choice, size_t result) const;
    /// What an operand is redistributed to at a choice. Inputs want their gradients as they are
    /// held themselves, and shared copies want what they are.
    const Placements& Wanted(size_t choice, size_t operand) const;
  };
  /// An operand: of `reader`, or of the output.
  struct Operand {
    int producer = 0, reader = 0;  ///< variables
    size_t result = 0, operand = 0;
    TypeId type;
    int64_t count = 0;           ///< of nodes that are alike, in a step
    bool is_fixed = false;       ///< written in place: cannot be redistributed
    bool keeps_sums = false;     ///< partial values are read as they are
    bool is_prefetched = false;  ///< can be redistributed beside computation
  };

  std::vector<Variable> variables;
  std::vector<Operand> operands;
  std::map<NodeId, int> variable_of;  ///< inputs and calls, twins too
  std::map<ValueId, int> shared_of;   ///< the variable of a value's copies, parameters left out
  PairwiseProblem problem;            ///< its variables are `variables`, in this order

  /// Of an operand whose producer and reader take these strategies.
  double EdgeUs(const Module& module, const CostModel& model, const Operand& operand,
                int producer_choice, int reader_choice) const;
};

/// Of the step `graph`, which `place` did not see. `plan` decides the data, and what else it
/// decides of parameters and calls is kept. Errors: an operator without a rule; entries of the plan
/// that no strategy fits.
Result<SearchSpace> MakeSearchSpace(Graph& graph, const PlacementPlan& plan, const CostModel& model,
                                    const SpaceOptions& options);

/// Bytes on a rank when backward begins and they are the most: parameters, their gradients and two
/// averages of the optimizer, and `storages`. At most `limit`.
PairwiseProblem::Row MemoryRow(const Graph& graph, const SearchSpace& space, const CostModel& model,
                               const std::vector<ValueId>& storages, double limit);

}  // namespace strata
