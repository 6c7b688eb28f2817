#include "passes/placement/costs/placement_cost.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/ops.h"
#include "passes/placement/costs/collective_cost.h"
#include "passes/placement/costs/function_cost.h"
#include "passes/placement/redistribution.h"

namespace strata {
namespace {

bool CanScatter(const Module& module, const Placement& partial) {
  const std::string_view reduce = module.str(partial.reduce);
  return reduce == "sum" || reduce == "avg";
}

/// Where a dimension lies in memory: collectives work on the slowest one.
std::vector<int32_t> PlacesInMemory(const Module& module, const Type& type) {
  std::vector<size_t> order(type.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (type.has_strides) {
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      const auto x = module.dims().Hint(type.strides[a]), y = module.dims().Hint(type.strides[b]);
      return x && y && *x > *y;
    });
  }
  std::vector<int32_t> places(order.size());
  for (size_t place = 0; place < order.size(); ++place)
    places[order[place]] = static_cast<int32_t>(place);
  return places;
}

Placements InMemory(Placements placements, const std::vector<int32_t>& places) {
  for (Placement& p : placements)
    if (IsCut(p) && static_cast<size_t>(p.dim) < places.size())
      p.dim = places[static_cast<size_t>(p.dim)];
  return placements;
}

/// Products of which each iteration of the loops multiplies and adds once.
constexpr std::string_view kProducts[] = {"addmm", "bmm", "dot", "mm", "mv"};

const Type* TensorOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid() || graph.module().types()[id].kind != TypeKind::kTensor) return nullptr;
  return &graph.module().types()[id];
}

}  // namespace

Result<CostModel> CostModel::Make(Topology topology, Mesh mesh) {
  STRATA_TRY(std::vector<AxisTopology> axes, AxisTopologies(topology, mesh));
  return CostModel(std::move(topology), std::move(mesh), std::move(axes));
}

double CostModel::MemoryUs(double bytes) const {
  const DeviceSpec& device = topology_.device;
  return crowding_ * std::max(bytes / device.bytes_per_us / device.efficiency, device.launch_us);
}

double CostModel::UpdateUs(const Module& module, const Type& type,
                           const Placements& placements) const {
  const double bytes = LocalBytes(module, type, placements);
  const double averages = 2 * 4 * bytes / static_cast<double>(ByteSize(type.dtype));
  const DeviceSpec& device = topology_.device;
  return scales_.of_others * crowding_ * (3 * bytes + 2 * averages) / device.state_rate() /
         device.efficiency;
}

double CostModel::LocalBytes(const Module& module, const Type& type,
                             const Placements& placements) const {
  double bytes = NumElements(module, type) * static_cast<double>(ByteSize(type.dtype));
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    const Placement& p = placements[axis];
    if (!IsCut(p)) continue;
    const int64_t ranks = axes_[axis].ranks;
    const auto dim = static_cast<size_t>(p.dim);
    const auto size = IsShard(p) && dim < type.sizes.size() ? module.dims().AsConst(type.sizes[dim])
                                                            : std::nullopt;
    // Where ranks divide unevenly, all have as much as the first.
    bytes *= size && *size > 0 && *size % ranks != 0
                 ? static_cast<double>((*size + ranks - 1) / ranks) / static_cast<double>(*size)
                 : 1 / static_cast<double>(ranks);
  }
  return bytes;
}

double CostModel::RedistributionUs(const Module& module, const Type& type, const Placements& from,
                                   const Placements& to, bool is_prefetched) const {
  if (from == to) return 0;
  return kTransitionUs + (is_prefetched ? exposed_ : 1) * ChangesUs(module, type, from, to);
}

double CostModel::ChangesUs(const Module& module, const Type& type, const Placements& from,
                            const Placements& to) const {
  const std::vector<int32_t> places = PlacesInMemory(module, type);
  double us = 0;
  double bytes = LocalBytes(module, type, from);
  const std::vector<AxisChange> changes =
      PlanRedistribution(InMemory(from, places), InMemory(to, places));
  for (size_t i = 0, joined = 1; i < changes.size(); i += joined) {
    const AxisChange& change = changes[i];
    MeshAxis group;
    joined = CountJoined(changes, i, mesh_, group);
    const AxisTopology axis = Joined(changes, i, joined);
    const auto ranks = static_cast<double>(axis.ranks);
    const auto collective = [&](CollectiveOp kind) { return ExchangeUs(kind, bytes, axis); };
    // Parts of another dimension than the slowest are copied before or after.
    const auto copies = [&](const Placement& placement) {
      return placement.dim == 0 ? 0 : MemoryUs(2 * bytes);
    };
    if (IsRows(change.from) && IsRows(change.to)) {
      // Sorted before or after; another dimension than the first is moved to the front and back.
      us += collective(CollectiveOp::kAllToAll) + MemoryUs(2 * bytes) + 2 * copies(change.from);
    } else if (IsCut(change.from) && IsCut(change.to)) {
      us += collective(CollectiveOp::kAllToAll) + copies(change.from) + copies(change.to);
    } else if (IsCut(change.from)) {
      bytes *= ranks;
      us += collective(CollectiveOp::kAllGather) + copies(change.from);
    } else if (IsPartial(change.from) && IsCut(change.to) && CanScatter(module, change.from)) {
      us += collective(CollectiveOp::kReduceScatter) + copies(change.to);
      bytes /= ranks;
    } else {
      if (IsPartial(change.from)) us += collective(CollectiveOp::kAllReduce);
      if (IsCut(change.to)) bytes /= ranks;
      if (IsPartial(change.to)) us += MemoryUs(2 * bytes);  // zeros on all ranks but the first
    }
  }
  return us;
}

double CostModel::ExchangeUs(CollectiveOp collective, double bytes,
                             const AxisTopology& axis) const {
  return topology_.ExchangeCrowding(mesh_.num_ranks()) *
         CollectiveUs(topology_.network, collective, bytes, axis);
}

AxisTopology CostModel::Joined(const std::vector<AxisChange>& changes, size_t first,
                               size_t count) const {
  AxisTopology joined;
  for (size_t i = first; i < first + count; ++i) {
    const AxisTopology& axis = axes_[changes[i].axis];
    joined.ranks *= axis.ranks;
    joined.nodes *= axis.nodes;
    joined.ranks_per_node *= axis.ranks_per_node;
  }
  return joined;
}

double CostModel::ComputeUs(const Graph& graph, NodeId node, const ShardingRule& rule,
                            std::span<const int64_t> factor_sizes,
                            std::span<const Placements> operands,
                            std::span<const Placements> results) const {
  const Module& module = graph.module();
  const std::vector<ValueId> values = graph.operands(node);
  const std::string_view op = BaseName(graph.op(node));
  if (graph.node(node).num_results > 0 && graph.value(graph.result(node)).alias_of.valid() &&
      rule.moves_elements)
    return 0;
  double bytes = 0, result_bytes = 0, elements = 0;
  DType dtype = DType::kUnknown;
  for (size_t i = 0; i < results.size(); ++i)
    if (const Type* type = TensorOf(graph, graph.result(node, i)))
      result_bytes += LocalBytes(module, *type, results[i]);
  for (size_t i = 0; i < values.size(); ++i) {
    const Type* type = TensorOf(graph, values[i]);
    const bool is_read = std::ranges::count(rule.ignored, static_cast<int>(i)) == 0;
    if (type == nullptr || !is_read) continue;
    if (dtype == DType::kUnknown) dtype = type->dtype;
    const double local = LocalBytes(module, *type, operands[i]);
    elements = std::max(elements, local / static_cast<double>(ByteSize(type->dtype)));
    // Of a table, only the rows are read that are looked up.
    bytes += op == "embedding" && i == 0 ? std::min(local, result_bytes) : local;
  }
  const double exchange = SoftmaxExchangeUs(graph, values, rule, factor_sizes, operands);
  const double memory = MemoryUs(bytes + result_bytes);
  const double flops = FlopsOf(op, rule, factor_sizes);
  const DeviceSpec& device = topology_.device;
  const double rate = FlopsRate(device, op, dtype);
  double us = crowding_ * FunctionUs(device, op, elements);
  if (flops > 0 && rate > 0) us = crowding_ * flops / rate / device.efficiency;
  return scales_.Of(graph, node) * std::max(memory, us) + exchange;
}

double CostModel::SoftmaxExchangeUs(const Graph& graph, const std::vector<ValueId>& values,
                                    const ShardingRule& rule, std::span<const int64_t> factor_sizes,
                                    std::span<const Placements> operands) const {
  if (rule.joint < 0 || values.empty()) return 0;
  const Type* type = TensorOf(graph, values[0]);
  if (type == nullptr) return 0;
  const auto classes =
      static_cast<double>(std::max<int64_t>(1, factor_sizes[static_cast<size_t>(rule.joint)]));
  double us = 0;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const Placement& p = operands[0][axis];
    const bool is_cut =
        IsShard(p) &&
        std::ranges::count(rule.operands[0][static_cast<size_t>(p.dim)], rule.joint) != 0;
    // A number for each row, twice.
    const double bytes = LocalBytes(graph.module(), *type, operands[0]) / classes;
    if (is_cut) us += 2 * ExchangeUs(CollectiveOp::kAllReduce, bytes, axes_[axis]);
  }
  return us;
}

double FlopsOf(std::string_view op, const ShardingRule& rule,
               std::span<const int64_t> factor_sizes) {
  std::vector<bool> counted(rule.factors.size());
  // The product of the sizes of factors that were not counted before.
  const auto iterations = [&](const FactorDims& dims) {
    double product = 1;
    for (const std::vector<int>& dim : dims) {
      for (const int index : dim) {
        const auto factor = static_cast<size_t>(index);
        if (counted[factor]) continue;
        counted[factor] = true;
        product *= static_cast<double>(std::max<int64_t>(1, factor_sizes[factor]));
      }
    }
    return product;
  };
  if (std::ranges::count(kProducts, op) != 0) {
    double all = 2;
    for (const FactorDims& operand : rule.operands)
      all *= iterations(operand);
    return all;
  }
  if (op.starts_with("_scaled_dot_product")) {  // two products forward, five backward
    const bool is_backward = op.ends_with("_backward");
    const size_t query = is_backward ? 1 : 0, key = query + 1;
    const double elements = iterations(rule.operands[query]);
    return (is_backward ? 10 : 4) * elements * iterations({rule.operands[key][2]});
  }
  if (op == "_grouped_mm") {  // each row is in one group
    const double rows = iterations(rule.operands[0]);
    return 2 * rows * iterations({rule.operands[1].back()});
  }
  return 0;
}

}  // namespace strata
