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
        whole_(FactorSizes(module_, rule)),
        expert_axes_(model.mesh().PartsOf("ep")),
        chosen_{.operands = std::vector<Placements>(rule.operands.size()),
                .results = std::vector<Placements>(rule.results.size())} {}

  std::vector<CallStrategy> Run() {
    Visit(whole_);
    return std::move(strategies_);
  }

 private:
  void Visit(const std::vector<int64_t>& sizes) {
    const size_t axis = depth_;
    if (axis == model_.mesh().axes().size()) return Keep(sizes);
    const int64_t ranks = model_.mesh().axes()[axis].size;
    for (const AxisStrategy& strategy : OnAxis(sizes, ranks)) {
      std::vector<int64_t> left = sizes;
      if (strategy.factor >= 0) {
        int64_t& size = left[static_cast<size_t>(strategy.factor)];
        size = size % ranks == 0 ? size / ranks : kUneven;
      }
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
    if (IsCast(graph_, node_)) {
      hints.insert(hints.end(), offered_.strided.begin(), offered_.strided.end());
      hints.insert(hints.end(), offered_.uneven.begin(), offered_.uneven.end());
    }
    std::vector<AxisStrategy> all;
    for (const Placement& hint : hints) {
      const std::vector<Placement> now(rule_.operands.size(), hint);
      for (AxisStrategy& strategy : AxisStrategies(module_, rule_, sizes, ranks, now)) {
        for (const int operand : rule_.ignored)
          strategy.operands[static_cast<size_t>(operand)] = Replicate();
        if (!IsOfChunksOrRows(strategy) || !DividesAlone(strategy, sizes, ranks)) continue;
        const bool is_known = std::ranges::any_of(all, [&](const AxisStrategy& other) {
          return other.operands == strategy.operands && other.results == strategy.results;
        });
        if (!is_known) all.push_back(std::move(strategy));
      }
    }
    return all;
  }

  /// A dimension that an axis divides unevenly is cut by that axis alone.
  bool DividesAlone(const AxisStrategy& strategy, const std::vector<int64_t>& sizes,
                    int64_t ranks) const {
    if (strategy.factor < 0) return true;
    const int64_t size = sizes[static_cast<size_t>(strategy.factor)];
    if (size == kUneven) return false;
    return size % ranks == 0 ||
           (size == whole_[static_cast<size_t>(strategy.factor)] && size >= ranks);
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

  static constexpr int64_t kUneven = 1;  // what an uneven cut leaves, which no other axis cuts

  Graph& graph_;
  Module& module_;
  const NodeId node_;
  const ShardingRule& rule_;
  const CostModel& model_;
  const OfferedPlacements& offered_;
  const std::vector<int64_t> whole_;  // sizes of the factors
  const std::vector<size_t> expert_axes_;
  size_t depth_ = 0;
  CallStrategy chosen_;
  std::vector<CallStrategy> strategies_;
};

}  // namespace

void OfferedPlacements::Add(const Module& module, const Type* type, const Placements& produced,
                            const Mesh& mesh, bool is_first) {
  const auto add = [](std::vector<Placement>& list, const Placement& placement) {
    if (std::ranges::find(list, placement) == list.end()) list.push_back(placement);
  };
  for (size_t axis = 0; axis < produced.size(); ++axis) {
    const Placement& p = produced[axis];
    if (IsPartial(p)) add(partial, p);
    if (IsRows(p)) add(rows, p);
    if (!is_first) continue;
    if (IsShard(p) && p.split > 0) add(strided, p);
    if (type != nullptr && IsUneven(module, *type, produced, axis, mesh)) add(uneven, p);
  }
}

std::vector<CallStrategy> CallStrategies(Graph& graph, NodeId node, const ShardingRule& rule,
                                         const CostModel& model, const OfferedPlacements& offered) {
  return Expansion(graph, node, rule, model, offered).Run();
}

std::vector<Placements> HeldPlacements(const Module& module, const Type& type, const Mesh& mesh) {
  std::vector<int64_t> sizes;
  for (const DimId size : type.sizes)
    sizes.push_back(module.dims().AsConst(size).value_or(1));
  const std::vector<int64_t> whole = sizes;
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
      const int64_t size = sizes[dim];
      const bool is_whole = size == whole[dim];
      if (size <= 1 || (size % ranks != 0 && !(is_whole && size >= ranks))) continue;
      sizes[dim] = size % ranks == 0 ? size / ranks : 1;  // cut by no other axis
      chosen.back() = Shard(dim);
      self(self);
      sizes[dim] = size;
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

bool IsUneven(const Module& module, const Type& type, const Placements& placements, size_t axis,
              const Mesh& mesh) {
  const Placement& cut = placements[axis];
  if (!IsShard(cut)) return false;
  const auto size = module.dims().AsConst(type.sizes[static_cast<size_t>(cut.dim)]);
  return size && *size % mesh.axes()[axis].size != 0;
}

}  // namespace strata
