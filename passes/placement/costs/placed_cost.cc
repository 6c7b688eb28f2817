#include "passes/placement/costs/placed_cost.h"

#include <algorithm>
#include <map>
#include <vector>

#include "passes/placement/costs/prefetch.h"
#include "passes/placement/inputs.h"
#include "passes/placement/rules/sharding_rule.h"
#include "passes/placement/strategies.h"

namespace strata {
namespace {

/// Placements of a value of a placed graph.
Placements PlacementsOf(const Graph& graph, ValueId value, size_t axes) {
  const TypeId type = graph.value(value).type;
  if (!type.valid() || graph.module().types()[type].placements.empty()) return Placements(axes);
  return graph.module().types()[type].placements;
}

/// Sizes of the factors on a rank: those of the strategies that were taken.
std::vector<int64_t> LocalFactors(const Module& module, const ShardingRule& rule, const Mesh& mesh,
                                  const std::vector<Placements>& operands,
                                  const std::vector<Placements>& results) {
  std::vector<int64_t> sizes = FactorSizes(module, rule);
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    std::vector<Placement> now, then;
    for (const Placements& placements : operands)
      now.push_back(placements[axis]);
    for (const Placements& placements : results)
      then.push_back(placements[axis]);
    for (const AxisStrategy& strategy :
         AxisStrategies(module, rule, sizes, mesh.axes()[axis].size, now)) {
      if (!(strategy.operands == now) || !(strategy.results == then)) continue;
      if (strategy.factor >= 0)
        sizes[static_cast<size_t>(strategy.factor)] /= mesh.axes()[axis].size;
      if (HasOwnRows(rule, strategy))
        sizes[static_cast<size_t>(rule.order.rows)] /= mesh.axes()[axis].size;
      break;
    }
  }
  return sizes;
}

Result<double> ComputeUs(Graph& graph, NodeId node, const CostModel& model) {
  STRATA_TRY(const ShardingRule rule, ShardingRuleOf(graph, node));
  const size_t axes = model.mesh().axes().size();
  std::vector<Placements> operands, results;
  for (const ValueId operand : graph.operands(node))
    operands.push_back(PlacementsOf(graph, operand, axes));
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    results.push_back(PlacementsOf(graph, graph.result(node, i), axes));
  const std::vector<int64_t> factors =
      LocalFactors(graph.module(), rule, model.mesh(), operands, results);
  return model.ComputeUs(graph, node, rule, factors, operands, results);
}

}  // namespace

Result<PlacedCost> CostOfPlaced(Graph& graph, const CostModel& model) {
  const Module& module = graph.module();
  const size_t axes = model.mesh().axes().size();
  const Prefetchable prefetchable = PrefetchableOf(graph);
  PlacedCost cost;
  for (const NodeId node : graph.nodes().Snapshot()) {
    PlacedCost::Item item{.node = node};
    const NodeKind kind = graph.node(node).kind;
    if (kind == NodeKind::kPlaceholder && KindOf(graph, node) == PlacedInput::kParameter) {
      const Type& type = module.types()[graph.value(graph.result(node)).type];
      item.compute_us = model.UpdateUs(module, type, PlacementsOf(graph, graph.result(node), axes));
    } else if (kind == NodeKind::kCall && graph.op(node) == kRedistributeOp) {
      const ValueId from = graph.operands(node)[0];
      item.communication_us = model.RedistributionUs(module, module.types()[graph.value(from).type],
                                                     PlacementsOf(graph, from, axes),
                                                     PlacementsOf(graph, graph.result(node), axes),
                                                     prefetchable.Has(graph.value(from).def, node));
    } else if (kind == NodeKind::kCall) {
      STRATA_TRY(item.compute_us, ComputeUs(graph, node, model));
    } else {
      continue;
    }
    cost.compute_us += item.compute_us;
    cost.communication_us += item.communication_us;
    cost.items.push_back(item);
  }
  return cost;
}

}  // namespace strata
