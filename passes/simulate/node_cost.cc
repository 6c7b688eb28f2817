#include "passes/simulate/node_cost.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "passes/placement/costs/collective_cost.h"
#include "passes/placement/costs/function_cost.h"
#include "passes/placement/placement.h"
#include "passes/simulate/compute.h"

namespace strata {
namespace {

/// Whether a node only names memory. A kernel may write what it reads, and name that again.
bool IsFree(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return true;
  if (KernelBodyOf(graph, node) != nullptr) return false;
  const OpTraits traits = TraitsOf(graph.op(node));
  const bool is_view = traits.view || (graph.node(node).num_results > 0 && !traits.mutates &&
                                       graph.value(graph.result(node)).alias_of.valid());
  return is_view || IsWait(graph, node) || CollectiveOf(graph, node).has_value();
}

CollectiveOp KindOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return CollectiveOp::kAllGather;
    case CollectiveKind::kReduceScatter:
      return CollectiveOp::kReduceScatter;
    case CollectiveKind::kAllToAll:
      return CollectiveOp::kAllToAll;
    default:
      return CollectiveOp::kAllReduce;
  }
}

}  // namespace

Result<NodeCost> NodeCost::Make(Topology topology, const Graph& graph) {
  const std::string_view text =
      graph.output().valid() ? graph.attribute(graph.output(), kMeshAttribute) : "";
  STRATA_TRY(Mesh mesh, Mesh::Parse(text));
  return NodeCost(std::move(topology), std::move(mesh), graph);
}

double NodeCost::ComputeUs(const Graph& graph, NodeId node) const {
  if (!measured_us_) return KernelUs(graph, node) * topology_.Crowding(mesh_.num_ranks());
  const auto measured = measured_us_->find(node);
  return measured == measured_us_->end() || IsFree(graph, node) ? 0 : measured->second;
}

double NodeCost::KernelUs(const Graph& graph, NodeId node) const {
  if (IsFree(graph, node)) return 0;
  const DeviceSpec& device = topology_.device;
  // What the graph is given, and what it writes there, comes from memory; the rest from caches.
  double bytes = 0, state_bytes = 0;
  const auto add = [&](ValueId value) {
    const ValueId owner = OwnerOf(graph, value);
    const bool is_given = graph.node(graph.value(owner).def).kind == NodeKind::kPlaceholder;
    (is_given ? state_bytes : bytes) += expected_.BytesOf(value);
  };
  std::set<ValueId> seen;
  graph.ForEachOperand(node, [&](ValueId value) {
    if (seen.insert(value).second) add(value);
  });
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    add(graph.result(node, i));
  const double memory_us = bytes / device.bytes_per_us + state_bytes / device.state_rate();
  double us = std::max(device.launch_us, memory_us / device.efficiency);
  us = std::max(us, FunctionsUs(graph, node));
  if (!IsCompute(graph, node)) return us;
  const TypeId type = graph.value(graph.result(node)).type;
  if (!type.valid()) return us;
  const double rate =
      FlopsRate(device, BaseName(graph.op(node)), graph.module().types()[type].dtype);
  if (rate == 0) return us;
  return std::max(us, ProductFlops(graph, node, expected_) / (rate * device.efficiency));
}

double NodeCost::FunctionsUs(const Graph& graph, NodeId node) const {
  const DeviceSpec& device = topology_.device;
  if (device.functions_per_us.empty()) return 0;
  const auto of_call = [&](const Graph& of, NodeId call) {
    double elements = 0;
    of.ForEachOperand(call, [&](ValueId value) {
      const TypeId type = of.value(value).type;
      if (!type.valid()) return;
      const auto size = static_cast<double>(ByteSize(of.module().types()[type].dtype));
      if (size > 0) elements = std::max(elements, expected_.BytesOf(type) / size);
    });
    return FunctionUs(device, BaseName(of.op(call)), elements);
  };
  const Graph* body = KernelBodyOf(graph, node);
  if (body == nullptr) return of_call(graph, node);
  double us = 0;
  for (const NodeId call : body->nodes())
    if (body->node(call).kind == NodeKind::kCall) us += of_call(*body, call);
  return us;
}

Result<AxisTopology> NodeCost::TopologyOf(const Graph& graph, NodeId launch) const {
  const std::string_view group = GroupOf(graph, launch);
  if (mesh_.num_ranks() > 1) return GroupTopology(topology_, mesh_, group);
  const bool states_size = IsCollective(graph, launch, CollectiveKind::kAllGather) ||
                           IsCollective(graph, launch, CollectiveKind::kReduceScatter);
  const int64_t ranks = states_size ? GroupSizeOf(graph, launch) : topology_.network.ranks_per_node;
  return GroupTopology(topology_, ranks, 1, group);
}

Result<bool> NodeCost::IsInsideNodes(const Graph& graph, NodeId launch) const {
  STRATA_TRY(const AxisTopology group, TopologyOf(graph, launch));
  return group.nodes == 1;
}

std::optional<double> NodeCost::TableUs(const Graph& graph, NodeId launch) const {
  const bool counts = !only_ || IsCollective(graph, launch, *only_);
  const std::vector<ValueId> operands = graph.operands(launch);
  if (!table_ || !counts || operands.empty()) return std::nullopt;
  const bool states_size = IsCollective(graph, launch, CollectiveKind::kAllGather) ||
                           IsCollective(graph, launch, CollectiveKind::kReduceScatter);
  return table_->Us(GroupOf(graph, launch), states_size ? GroupSizeOf(graph, launch) : 0,
                    BaseName(graph.op(launch)), expected_.BytesOf(operands[0]));
}

Result<double> NodeCost::CollectiveUs(const Graph& graph, NodeId launch) const {
  STRATA_TRY(const AxisTopology group, TopologyOf(graph, launch));
  if (const auto measured = TableUs(graph, launch)) return *measured;
  if (group.ranks < 2 || (only_ && !IsCollective(graph, launch, *only_))) return 0.0;
  return topology_.ExchangeCrowding(mesh_.num_ranks()) *
         strata::CollectiveUs(topology_.network, KindOf(*CollectiveOf(graph, launch)),
                              expected_.CollectiveBytes(launch), group);
}

}  // namespace strata
