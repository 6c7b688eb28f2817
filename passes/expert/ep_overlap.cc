#include "passes/expert/ep_overlap.h"

#include <map>
#include <vector>

#include "ir/rewriter.h"
#include "passes/expert/exchange_labels.h"
#include "passes/expert/execution_order.h"
#include "passes/expert/overlap_region.h"
#include "passes/expert/overlap_schedule.h"

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

/// The number of regions that were reordered.
Result<size_t> Reorder(Graph& graph, const EpOverlap::Options& options) {
  STRATA_TRY(const std::vector<ChunkBodies> bodies, CollectChunkBodies(graph, options.module_fqn));
  if (bodies.empty()) return size_t{0};
  Rewriter rewriter(graph);
  LabelTokenExchanges(rewriter);
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
  for (const NodeId node : sorted)
    rewriter.MoveBefore(node, NodeId{});
  return count;
}

}  // namespace

Result<Changed> EpOverlap::Run(Module& module) {
  size_t count = 0;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const size_t reordered, Reorder(module.graph(id), options_));
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
