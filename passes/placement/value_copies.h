#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/rewriter.h"
#include "passes/placement/dispatch.h"
#include "passes/placement/placed_values.h"
#include "passes/placement/reshard.h"

namespace strata {

/// Makes copies of values with other placements: `strata.redistribute` nodes, one for all readers
/// that want the same.
/// REQUIRES: the arguments outlive this; no value of the graph is placed yet.
class ValueCopies {
 public:
  ValueCopies(PlacedValues& values, const PlacementPlan& plan, const Dispatches& dispatches,
              Rewriter& rewriter, Reshard reshard);

  /// `value` as `reader` wants it. A new node stands before `reader`.
  ValueId ForReader(ValueId value, const Placements& wanted, NodeId reader);
  /// `value` as the graph returns it. A new node stands right after the value is made, so that
  /// ranks exchange it while others are computed.
  ValueId ForOutput(ValueId value, const Placements& wanted);
  /// New nodes at the cursor of the rewriter.
  ValueId Make(ValueId value, const Placements& wanted);

  /// Reads what the plan says of copies of the results of a call.
  void DecideShared(NodeId node);
  /// A view of an operand that was redistributed is a view of the copy. `before`, `after`: the
  /// operands of the node of `result` before and after redistribution.
  void FollowStorage(ValueId result, const std::vector<ValueId>& before,
                     const std::vector<ValueId>& after);

 private:
  /// Whether every rank can make its part of `value` itself: its elements are one literal, nothing
  /// but one node reads it, and the plan does not place it.
  bool IsFill(ValueId value, const Placements& wanted) const;
  /// The copy that the plan wants readers of `value` to share, before the first that needs one.
  std::optional<ValueId> Shared(ValueId value, NodeId reader);
  /// Rows are exchanged once: a view of them is that of their copy, which others may read too.
  /// None: `value` does not view rows.
  std::optional<ValueId> OfViewedRows(ValueId value, const Placements& wanted, NodeId reader);
  /// Whether backward gathers again what forward gathered of a parameter, or of a cast of it.
  bool IsResharded(ValueId value) const;
  /// Of a value and its copies, the one from which `wanted` is made with the least effort.
  ValueId Nearest(ValueId value, const Placements& wanted) const;
  /// New nodes of the phase of `reader`.
  ValueId MakeFor(ValueId value, const Placements& wanted, NodeId reader);
  /// `value` on the way to `wanted`: rows move between the ranks of tokens and of experts by an
  /// exchange of their own. What makes a rank's part smaller comes before it, everything else
  /// after.
  ValueId WithRowsMoved(ValueId value, const Placements& wanted);
  /// One node.
  ValueId Copy(ValueId value, const Placements& wanted);
  /// What counts the rows that move between the ranks of tokens and of experts; none: none do.
  ValueId CountsFor(ValueId value, const Placements& wanted) const;

  PlacedValues& values_;
  const Graph& graph_;
  Module& module_;
  const PlacementPlan& plan_;
  const Dispatches& dispatches_;
  Rewriter& rewriter_;
  const std::set<ValueId> kept_;           // parameters that stay gathered after forward
  std::map<ValueId, Placements> shared_;   // copies that the plan decides and no reader needed yet
  std::map<ValueId, ValueId> first_root_;  // the owner of a value's storage before this pass
};

}  // namespace strata
