#include "passes/placement/auto/call_strategies.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "passes/placement/inputs.h"
#include "passes/placement/strategies.h"

namespace strata {
namespace {

/// Combines the strategies of the axes.
class Expansion {
 public:
  Expansion(Graph& graph, NodeId node, const ShardingRule& rule, const CostModel& model,
            const OfferedPlacements& offered)
      : graph_(graph),
        module_(graph.module()),
        node_(node),
        rule_(rule),
        model_(model),
        offered_(offered),
        expert_axes_(model.mesh().PartsOf("ep")),
        chosen_{.operands = std::vector<Placements>(rule.operands.size()),
                .results = std::vector<Placements>(rule.results.size())} {}

  std::vector<CallStrategy> Run() {
    Visit(FactorSizes(module_, rule_));
    return std::move(strategies_);
  }

 private:
  void Visit(const std::vector<int64_t>& sizes) {
    const size_t axis = depth_;
    if (axis == model_.mesh().axes().size()) return Keep(sizes);
    const int64_t ranks = model_.mesh().axes()[axis].size;
    for (const AxisStrategy& strategy : OnAxis(sizes, ranks)) {
      std::vector<int64_t> left = sizes;
      if (strategy.factor >= 0) left[static_cast<size_t>(strategy.factor)] /= ranks;
      if (HasOwnRows(rule_, strategy)) left[static_cast<size_t>(rule_.order.rows)] /= ranks;
      for (size_t i = 0; i < strategy.operands.size(); ++i)
        chosen_.operands[i].push_back(strategy.operands[i]);
      for (size_t i = 0; i < strategy.results.size(); ++i)
        chosen_.results[i].push_back(strategy.results[i]);
      ++depth_;
      Visit(left);
      --depth_;
      for (Placements& placements : chosen_.operands)
        placements.pop_back();
      for (Placements& placements : chosen_.results)
        placements.pop_back();
    }
  }

  std::vector<AxisStrategy> OnAxis(const std::vector<int64_t>& sizes, int64_t ranks) {
    std::vector<Placement> hints{Replicate()};
    hints.insert(hints.end(), offered_.partial.begin(), offered_.partial.end());
    hints.insert(hints.end(), offered_.rows.begin(), offered_.rows.end());
    if (IsCast(graph_, node_))
      hints.insert(hints.end(), offered_.strided.begin(), offered_.strided.end());
    std::vector<AxisStrategy> all;
    for (const Placement& hint : hints) {
      const std::vector<Placement> now(rule_.operands.size(), hint);
      for (AxisStrategy& strategy : AxisStrategies(module_, rule_, sizes, ranks, now)) {
        for (const int operand : rule_.ignored)
          strategy.operands[static_cast<size_t>(operand)] = Replicate();
        if (!IsOfChunksOrRows(strategy)) continue;
        const bool is_known = std::ranges::any_of(all, [&](const AxisStrategy& other) {
          return other.operands == strategy.operands && other.results == strategy.results;
        });
        if (!is_known) all.push_back(std::move(strategy));
      }
    }
    return all;
  }

  /// Blocks are cut in step with each other, which edges of pairs cannot say.
  bool IsOfChunksOrRows(const AxisStrategy& strategy) const {
    const bool is_expert_axis = std::ranges::count(expert_axes_, depth_) != 0;
    const auto is_known = [&](const Placement& p) {
      return !IsCut(p) || IsShard(p) || IsByToken(p) || (IsByExpert(p) && is_expert_axis);
    };
    return std::ranges::all_of(strategy.operands, is_known) &&
           std::ranges::all_of(strategy.results, is_known);
  }

  /// Rows go to the ranks of their experts in one exchange of all ranks of `ep`.
  bool AreOnAllExpertAxes() const {
    const auto is_whole = [&](const Placements& placements) {
      const auto by_expert = static_cast<size_t>(std::ranges::count_if(placements, IsByExpert));
      return by_expert == 0 || by_expert == expert_axes_.size();
    };
    return std::ranges::all_of(chosen_.operands, is_whole) &&
           std::ranges::all_of(chosen_.results, is_whole);
  }

  void Keep(const std::vector<int64_t>& sizes) {
    if (!AreNested() || !AreOnAllExpertAxes()) return;
    chosen_.compute_us =
        model_.ComputeUs(graph_, node_, rule_, sizes, chosen_.operands, chosen_.results);
    strategies_.push_back(chosen_);
  }

  /// A strided shard lies inside shards of its dimension on inner axes, as many of them as it
  /// names.
  bool AreNested() const {
    const auto is_nested = [&](const Placements& placements) {
      for (size_t axis = 0; axis < placements.size(); ++axis) {
        const Placement& outer = placements[axis];
        if (!IsShard(outer) || outer.split == 0) continue;
        int64_t parts = 1;
        for (size_t inner = axis + 1; inner < placements.size(); ++inner)
          if (IsShard(placements[inner]) && placements[inner].dim == outer.dim)
            parts *= model_.mesh().axes()[inner].size;
        if (parts != outer.split) return false;
      }
      return true;
    };
    return std::ranges::all_of(chosen_.operands, is_nested) &&
           std::ranges::all_of(chosen_.results, is_nested);
  }

  Graph& graph_;
  Module& module_;
  const NodeId node_;
  const ShardingRule& rule_;
  const CostModel& model_;
  const OfferedPlacements& offered_;
  const std::vector<size_t> expert_axes_;
  size_t depth_ = 0;
  CallStrategy chosen_;
  std::vector<CallStrategy> strategies_;
};

}  // namespace

std::vector<CallStrategy> CallStrategies(Graph& graph, NodeId node, const ShardingRule& rule,
                                         const CostModel& model, const OfferedPlacements& offered) {
  return Expansion(graph, node, rule, model, offered).Run();
}

std::vector<Placements> HeldPlacements(const Module& module, const Type& type, const Mesh& mesh) {
  std::vector<int64_t> sizes;
  for (const DimId size : type.sizes)
    sizes.push_back(module.dims().AsConst(size).value_or(1));
  std::vector<Placements> all;
  Placements chosen;
  const auto visit = [&](const auto& self) -> void {
    const size_t axis = chosen.size();
    if (axis == mesh.axes().size()) {
      all.push_back(chosen);
      return;
    }
    chosen.push_back(Replicate());
    self(self);
    const int64_t ranks = mesh.axes()[axis].size;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (sizes[dim] <= 1 || sizes[dim] % ranks != 0) continue;
      sizes[dim] /= ranks;
      chosen.back() = Shard(dim);
      self(self);
      sizes[dim] *= ranks;
    }
    chosen.pop_back();
  };
  visit(visit);
  for (size_t i = 0, plain = all.size(); i < plain; ++i) {
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      const auto cuts = [&](const Placement& p) {
        return IsShard(p) && static_cast<size_t>(p.dim) == dim;
      };
      Placements strided = all[i];
      const auto outer = std::ranges::find_if(strided, cuts);
      if (outer == strided.end() || std::count_if(outer + 1, strided.end(), cuts) == 0) continue;
      int64_t parts = 1;
      for (auto inner = outer + 1; inner != strided.end(); ++inner)
        if (cuts(*inner)) parts *= mesh.axes()[static_cast<size_t>(inner - strided.begin())].size;
      outer->split = static_cast<int32_t>(parts);
      all.push_back(std::move(strided));
    }
  }
  return all;
}

}  // namespace strata
