#pragma once
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "passes/placement/dispatch.h"
#include "passes/placement/placed_values.h"
#include "passes/placement/strategies.h"

namespace strata {

/// Chooses how a node runs on the ranks: axis by axis the strategy of its sharding rule that moves
/// the fewest bytes, with what the readers of its results must move at least, or the strategy that
/// the plan names.
/// REQUIRES: `values`, `plan` and `dispatches` outlive this.
class StrategyChoice {
 public:
  StrategyChoice(PlacedValues& values, const PlacementPlan& plan, const Dispatches& dispatches)
      : values_(values),
        graph_(values.graph()),
        module_(values.module()),
        mesh_(values.mesh()),
        plan_(plan),
        dispatches_(dispatches) {}

  /// Placements of each operand and result.
  struct Choice {
    std::vector<Placements> operands, results;
  };

  /// REQUIRES: the operands of `node` are placed.
  /// Errors: the plan names a strategy that `rule` does not allow; a tensor that is written would
  /// have to be redistributed first.
  Result<Choice> Choose(NodeId node, const ShardingRule& rule,
                        const std::vector<ValueId>& operands);

 private:
  /// What the plan says of a call on one axis. Operands whose value has no effect stay as they are;
  /// the others become those of `now`, of which the strategies with partial operands are made.
  Result<std::optional<AxisStrategy>> Decided(NodeId node, const ShardingRule& rule, size_t axis,
                                              std::vector<Placement>& now);
  Error NoStrategy(NodeId node, size_t axis) const;
  /// No strategy fits a node that is not decided: what it needs of its operands.
  Error NothingFits(NodeId node, const ShardingRule& rule,
                    const std::vector<std::vector<Placements>>& available) const;
  /// A step reads parameters as their casts: each rank casts what it stores, and that is gathered,
  /// in fewer bytes and with what else its block reads.
  bool IsCastOfParameter(NodeId node);
  /// A gradient of a parameter is summed over ranks in the type in which it is returned.
  bool IsCastOfGradient(NodeId node) const;
  static void KeepStored(const Placement& stored, std::vector<AxisStrategy>& strategies);
  double CostOf(const std::vector<Placements>& available, size_t axis, const Placement& wanted,
                double bytes) const;
  /// The cost of operand `i` in the placement of a strategy. What counts rows is not made partial:
  /// summands that no rank counted are not the rows of any.
  double CostOfOperand(const ShardingRule& rule, const AxisStrategy& strategy, size_t i,
                       const std::vector<Placements>& available, size_t axis, double bytes) const;
  double CostOf(NodeId node, const ShardingRule& rule, const std::vector<ValueId>& operands,
                const std::vector<std::vector<Placements>>& available, size_t axis,
                const AxisStrategy& strategy);
  /// False for a strategy that cuts rows in chunks which some axis cuts by expert, since their
  /// number depends on data, or that moves rows to their experts on some of the axes that cut the
  /// experts.
  bool MayJoin(NodeId node, const std::vector<ValueId>& operands, const Choice& choice,
               const AxisStrategy& strategy, size_t axis);
  bool MayJoin(ValueId value, const Placements& before, const Placement& placement, size_t axis);
  /// Whether ranks have experts of their own, whose rows are dimension `dim` of `value`.
  bool IsOfExperts(ValueId value, int32_t dim);
  /// False for a strategy of a view that cuts the blocks of which axes chosen before have parts: a
  /// rank would have parts of fewer blocks than they counted.
  static bool KeepsBlocks(const ShardingRule& rule, const Choice& choice,
                          const AxisStrategy& strategy, size_t axis);
  /// How ranks hold the experts of a dispatch on `axis`, by the weight of its products.
  std::optional<Placement> ExpertsOn(ValueId weight, size_t axis);
  /// Ranks that have parts of every expert need the rows of all tokens; ranks that have experts of
  /// their own, or all of them, sort and count their own tokens, where they can divide them.
  bool MaySort(NodeId node, const ShardingRule& rule, const std::vector<int64_t>& sizes,
               const AxisStrategy& strategy, size_t axis);
  bool MayCount(NodeId node, const ShardingRule& rule, const std::vector<int64_t>& sizes,
                const AxisStrategy& strategy, size_t axis);
  /// False where ranks sort and count their own tokens, for a strategy that reads the experts of
  /// tokens cut in another way than they are: a rank would count the rows of another one.
  bool KeepsTokens(NodeId node, const std::vector<ValueId>& operands,
                   const std::vector<Placement>& now, const AxisStrategy& strategy, size_t axis);
  /// Whether the ranks have the tokens of the sort `strategy` that they counted.
  bool SortsCounted(ValueId counts, const AxisStrategy& strategy, size_t axis) const;
  /// Whether the ranks of `axis` can divide a factor of this size.
  bool Divides(const std::vector<int64_t>& sizes, int factor, size_t axis) const;
  /// A product over rows runs by expert on the axes that cut the experts, and there alone: else the
  /// gradients of all experts would be summed over the ranks that share them.
  bool IsWhereExpertsAre(const ShardingRule& rule, const AxisStrategy& strategy,
                         const std::vector<ValueId>& operands, size_t axis);
  /// True for a strategy that reads in another placement what it writes in place.
  static bool MovesWritten(const ShardingRule& rule, const AxisStrategy& strategy,
                           const std::vector<std::vector<Placements>>& available, size_t axis);
  double ShareOf(const Placements& placements) const;
  /// What the readers of a result must at least move when it has `placement` on `axis`. Looks
  /// through at most `views` views: what a view costs shows where its elements are used.
  /// `share`: the part of the value that other axes leave on a rank.
  double CostAhead(ValueId value, size_t axis, const Placement& placement, int views, double share);
  /// What it costs to give a gradient the placement of its parameter. On axes that share the batch,
  /// every gradient is a sum over the ranks.
  double OutputCost(NodeId output, ValueId value, size_t axis, const Placement& placement,
                    double share) const;
  double ReaderCost(NodeId reader, const ShardingRule& rule, ValueId value, size_t axis,
                    const Placement& placement, int views, double share);

  static constexpr double kPinned = 1000;  // factor of the cost to move a parameter again
  static constexpr int kViewsAhead = 4;

  PlacedValues& values_;
  const Graph& graph_;
  Module& module_;
  const Mesh& mesh_;
  const PlacementPlan& plan_;
  const Dispatches& dispatches_;
  /// What `CostAhead` gave for a value, a placement and a number of views.
  std::map<std::tuple<ValueId, Placement::Kind, int32_t, int32_t, StrId, int>, double> ahead_;
};

}  // namespace strata
