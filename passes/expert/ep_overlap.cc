#include "passes/expert/ep_overlap.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "passes/expert/exchange_labels.h"
#include "passes/expert/execution_order.h"
#include "passes/expert/overlap_by_cost.h"
#include "passes/expert/overlap_region.h"
#include "passes/expert/overlap_schedule.h"
#include "passes/simulate/node_cost.h"

namespace strata {
namespace {

using Extra = std::map<NodeId, std::vector<NodeId>>;

/// Every node of the region runs after the one before it in the schedule.
void AddChain(const OverlapRegion& region, const OverlapSchedule& schedule, Extra& extra) {
  NodeId last;
  for (const std::vector<size_t>& block : schedule.blocks) {
    for (const size_t i : block) {
      if (last.valid()) extra[region.node(i)].push_back(last);
      last = region.node(i);
    }
  }
}

void SetNonBlocking(Rewriter& rewriter, NodeId node) {
  const Graph& graph = rewriter.graph();
  const StrId name = graph.module().strings().Find("non_blocking");
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
    if (graph.kwarg(node, i).name != name) kwargs.push_back(graph.kwarg(node, i));
  kwargs.push_back({rewriter.graph().module().Intern("non_blocking"), Arg::Bool(true)});
  const std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  rewriter.SetArgs(node, args, kwargs);
}

void Label(Rewriter& rewriter, const OverlapRegion& region, const OverlapSchedule& schedule) {
  for (const OverlapRegion::Wait& wait : region.waits()) {
    rewriter.SetAttribute(wait.node, kExchangeAttribute, "");
    rewriter.SetAttribute(wait.node, kExchangeWaitAttribute, wait.label);
  }
  for (const size_t i : schedule.non_blocking)
    SetNonBlocking(rewriter, region.node(i));
}

void MoveTo(Rewriter& rewriter, const std::vector<NodeId>& sorted) {
  for (const NodeId node : sorted)
    rewriter.MoveBefore(node, NodeId{});
}

/// The number of regions that were reordered, in rounds.
Result<size_t> ReorderInRounds(Graph& graph, const std::vector<ChunkBodies>& bodies,
                               const EpOverlap::Options& options) {
  Rewriter rewriter(graph);
  const ExecutionOrder order(graph);
  Extra extra;
  size_t count = 0;
  for (const ChunkBodies& body : bodies) {
    STRATA_TRY(const std::optional<OverlapRegion> region, OverlapRegion::Make(graph, order, body));
    if (!region) continue;
    STRATA_TRY(const OverlapSchedule schedule,
               ScheduleOverlap(graph, *region, options.pair_first_token_exchange));
    AddChain(*region, schedule, extra);
    Label(rewriter, *region, schedule);
    ++count;
  }
  if (count == 0) return count;
  STRATA_TRY(const std::vector<NodeId> sorted, order.Sort(extra));
  MoveTo(rewriter, sorted);
  return count;
}

/// The same by costs.
Result<size_t> ReorderByCost(Graph& graph, const std::vector<ChunkBodies>& bodies,
                             const Topology& topology) {
  Rewriter rewriter(graph);
  std::vector<OverlapRegion> regions;
  {
    const ExecutionOrder order(graph);
    for (const ChunkBodies& body : bodies) {
      STRATA_TRY(std::optional<OverlapRegion> region, OverlapRegion::Make(graph, order, body));
      if (region) regions.push_back(std::move(*region));
    }
  }
  if (regions.empty()) return size_t{0};
  JoinChunkLanes(rewriter);
  STRATA_TRY(const NodeCost cost, NodeCost::Make(topology, graph));
  const ExecutionOrder order(graph);
  STRATA_TRY(const std::vector<NodeId> sorted, OrderByCost(graph, order, bodies, cost));
  MoveTo(rewriter, sorted);
  for (const OverlapRegion& region : regions)
    Label(rewriter, region, {});
  return regions.size();
}

Result<size_t> Reorder(Graph& graph, const EpOverlap::Options& options,
                       const std::optional<Topology>& topology) {
  STRATA_TRY(const std::vector<ChunkBodies> bodies, CollectChunkBodies(graph, options.module_fqn));
  if (bodies.empty()) return size_t{0};
  Rewriter rewriter(graph);
  LabelTokenExchanges(rewriter);
  return topology ? ReorderByCost(graph, bodies, *topology)
                  : ReorderInRounds(graph, bodies, options);
}

}  // namespace

Result<Changed> EpOverlap::Run(Module& module) {
  std::optional<Topology> topology;
  if (!options_.topology.empty()) {
    STRATA_TRY(topology, Topology::Load(options_.topology));
  }
  size_t count = 0;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const size_t reordered, Reorder(module.graph(id), options_, topology));
    count += reordered;
  }
  if (count == 0 && options_.require_all_to_all) {
    return Error(
        "did not find any chunked EP all-to-all regions: '{}': run ep-chunk before, on a graph "
        "that exchanges tokens",
        options_.module_fqn);
  }
  return Changed::kYes;
}

}  // namespace strata
