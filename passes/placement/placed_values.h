#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "passes/placement/call_rules.h"
#include "passes/placement/node_key.h"
#include "passes/placement/placement.h"
#include "passes/placement/plan.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {

/// The values of a graph while they get placements: what each has, its copies with other
/// placements, and how parameters are read.
/// REQUIRES: `graph` and `plan` outlive this.
class PlacedValues {
 public:
  PlacedValues(Graph& graph, const PlacementPlan& plan);

  Graph& graph() const { return graph_; }
  Module& module() const { return module_; }
  const Mesh& mesh() const { return mesh_; }
  const Placements& replicated() const { return replicated_; }

  /// Of a batch, not of gradients: these come from a step.
  bool IsStep() const { return !takes_gradients_; }
  bool HasGradients() const { return has_gradients_; }

  bool IsTensor(ValueId value) const;
  bool IsPlaced(ValueId value) const;
  /// Replicated, if it has none.
  const Placements& PlacementsOf(ValueId value) const;
  /// Of all ranks together.
  double BytesOf(ValueId value) const;
  /// The owner of the storage of `value`.
  ValueId RootOf(ValueId value) const;

  /// A step reads `parameter`, the next one, as `read`.
  void AddParameter(ValueId parameter, Placements read) {
    parameters_.push_back(parameter);
    read_as_.emplace(parameter, std::move(read));
  }
  void AddGradient(ValueId gradient) { gradients_.push_back(gradient); }
  void AddBatch(const Placements& placements);
  /// Whether ranks of the mesh axis have different parts of the batch.
  bool SharesBatch(size_t axis) const { return batch_axes_.contains(axis); }
  /// What `value`, which is output `index` of the graph, must have: a step gives its loss, then a
  /// gradient for each parameter; without a batch, outputs are inputs that were added to, or sums
  /// of the gradients that come in.
  const Placements& PlacementsOfOutput(ValueId value, size_t index) const;
  /// `cast`, of a parameter, is read as the parameter: it is gathered after the cast.
  void AddCast(ValueId cast, ValueId parameter);
  void AddParameterView(ValueId view) { parameter_views_.insert(view); }
  /// Where a parameter, or a cast of it, is read by a step: gathered. Optimizers update what is
  /// stored.
  bool IsGathered(ValueId value, NodeId reader) const;
  /// Gathered parameters and views of them are read as the plan says.
  bool IsPinned(ValueId value, NodeId reader) const;
  /// How a parameter, or a view, cast or padded copy of one that is not placed yet, will be read;
  /// none: it is none of these.
  std::optional<Placements> ReadAs(ValueId value);

  void AddCopy(ValueId value, ValueId copy) { copies_[value].push_back(copy); }
  /// Of `value`, in the order in which they were made.
  const std::vector<ValueId>& CopiesOf(ValueId value) const;
  /// Copies of what shares storage with a value that was written hold its old elements.
  void ForgetCopies(ValueId written);
  /// The placements in which `value` can be read for nothing.
  std::vector<Placements> Available(ValueId value, NodeId reader) const;

  /// The rule of a node; null: it has none. What depends on placements is of the first call.
  const ShardingRule* RuleOf(NodeId node);
  const CallRules& rules() const { return call_rules_; }
  /// By what name the plan may decide a node; null: it decides none, or not this one.
  const NodeKey* KeyOf(NodeId node) const;

 private:
  Graph& graph_;
  Module& module_;
  const Mesh& mesh_;
  const Placements replicated_;
  const CallRules call_rules_;
  bool takes_gradients_ = false, has_gradients_ = false;
  std::vector<ValueId> parameters_, gradients_;
  std::set<size_t> batch_axes_;
  std::map<ValueId, Placements> read_as_;  // by parameter or cast of one
  std::set<ValueId> parameter_views_;
  std::map<ValueId, std::vector<ValueId>> copies_;
  std::map<NodeId, std::optional<ShardingRule>> rules_;
  std::map<NodeId, NodeKey> keys_;  // of the calls that the plan may decide
};

}  // namespace strata
