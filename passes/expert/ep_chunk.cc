#include "passes/expert/ep_chunk.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/rewriter.h"
#include "passes/expert/chunk_checks.h"
#include "passes/expert/chunk_context.h"
#include "passes/expert/chunk_lowering.h"
#include "passes/expert/chunk_regions.h"
#include "passes/expert/gradient_boundaries.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Sizes that nodes compute become literals where a root reads them: a chunk then has its own.
/// Nodes that nothing reads any more go.
void InlineSizes(Graph& graph, const ChunkRoots& roots, const ChunkSymbols& symbols) {
  Rewriter rewriter(graph);
  const std::vector<NodeId> order = graph.nodes().Snapshot();
  for (const NodeId node : order) {
    if (graph.node(node).kind != NodeKind::kCall || !IsSizeComputation(graph, node, symbols))
      continue;
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId value = graph.result(node, i);
      const DimId dim = graph.module().types()[graph.value(value).type].dim;
      const std::optional<int64_t> number = graph.module().dims().AsConst(dim);
      std::vector<Use> uses;
      for (const Use use : graph.uses(value))
        if (roots.RootOf(graph, use.user).valid()) uses.push_back(use);
      for (const Use use : uses)
        rewriter.SetSlot(use.user, use.slot, number ? Arg::Int(*number) : Arg::Dim(dim));
    }
  }
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const bool is_size =
        graph.node(*node).kind == NodeKind::kCall && IsSizeComputation(graph, *node, symbols);
    if (is_size && !graph.HasUses(*node)) rewriter.Erase(*node);
  }
}

Status CheckOptions(const EpChunk::Options& options) {
  const ChunkOptions& chunks = options.chunks;
  if (chunks.num_chunks < 2)
    return Error("ep_overlap.num_chunks is {}: take 2 or more", chunks.num_chunks);
  if (chunks.module_fqn != "layers.*" && chunks.module_fqn != "layers.*.moe") {
    return Error("ep_overlap.module_fqn is '{}': take layers.* or layers.*.moe", chunks.module_fqn);
  }
  if (chunks.chunk_dim == ChunkDim::kSeq && chunks.module_fqn != "layers.*.moe") {
    return Error(
        "ep_overlap.chunk_dim=seq is only supported with module_fqn=layers.*.moe: attention needs "
        "whole sequences");
  }
  return Ok();
}

bool HasBackward(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](NodeId node) { return IsBackward(graph, node); });
}

}  // namespace

Status ChunkRegions(Graph& graph, const ChunkRoots& roots, const ChunkOptions& options) {
  STRATA_TRY(const ChunkSymbols symbols, ChunkSymbols::Select(graph, graph.module(), options));
  InlineSizes(graph, roots, symbols);
  ChunkContext context(graph, symbols, options);
  bool has_region = false;
  for (const bool is_backward : {false, true}) {
    const GradientBoundaries gradients(graph, symbols);
    STRATA_TRY(const ChunkPlan plan, PlanChunks(graph, roots, symbols, gradients, context.copies));
    for (const ChunkRegion& region : plan.regions) {
      if (region.is_backward != is_backward) continue;
      STRATA_RETURN_IF_ERROR(LowerRegion(context, plan, region, gradients));
      has_region = true;
    }
  }
  if (!has_region) {
    return Error("found no regions: graph {}: nothing of '{}' depends on the chunked dimension",
                 graph.name_text(), options.module_fqn);
  }
  context.views.Update(context.rewriter);
  return CheckChunksStayInside(graph);
}

Result<Changed> EpChunk::Run(Module& module) {
  STRATA_RETURN_IF_ERROR(CheckOptions(options_));
  std::vector<GraphId> programs = module.programs();
  // Where there is a training step, it is what exchanges and overlaps are about.
  if (std::ranges::any_of(programs, [&](GraphId id) { return HasBackward(module.graph(id)); }))
    std::erase_if(programs, [&](GraphId id) { return !HasBackward(module.graph(id)); });
  for (const GraphId id : programs) {
    Graph& graph = module.graph(id);
    ChunkRoots roots(graph, options_.chunks.module_fqn);
    STRATA_RETURN_IF_ERROR(roots.KeepExperts(graph, options_.require_all_to_all));
    STRATA_RETURN_IF_ERROR(ChunkRegions(graph, roots, options_.chunks));
  }
  return Changed(!programs.empty());
}

}  // namespace strata
