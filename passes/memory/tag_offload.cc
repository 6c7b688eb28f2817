#include "passes/memory/tag_offload.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/by_node.h"
#include "ir/rewriter.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

struct Candidate {
  NodeId node;
  int64_t bytes = 0;
};

/// Readers of all results, through views.
struct Needs {
  bool by_backward = false, by_recomputed = false;
};
Needs NeedsOf(const Graph& graph, NodeId node, const IdVector<NodeId, int32_t>& position) {
  Needs needs;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const StorageReaders readers = ReadersOfStorage(graph, graph.result(node, i), position);
    needs.by_backward |= !readers.backward.empty();
    needs.by_recomputed |= std::ranges::any_of(
        readers.forward, [&](NodeId reader) { return IsRecomputable(graph, reader); });
  }
  return needs;
}

bool MayOffload(const Graph& graph, NodeId node, const IdVector<NodeId, int32_t>& position) {
  const std::optional<MemoryTag> tag = MemoryTagOf(graph, node);
  if (tag && *tag != MemoryTag::kMustSave) return false;
  const Needs needs = NeedsOf(graph, node, position);
  // What is recomputed reads saved results in backward.
  if (tag) return needs.by_backward || needs.by_recomputed;
  return needs.by_backward && !needs.by_recomputed;
}

std::vector<Candidate> Candidates(const Graph& graph) {
  const IdVector<NodeId, int32_t> position = PositionsOf(graph);
  const IdVector<NodeId, int64_t> bytes = OffloadableBytes(graph);
  std::vector<Candidate> candidates;
  for (const NodeId node : graph.nodes()) {
    const int64_t own = bytes[node];
    if (own > 0 && MayOffload(graph, node, position)) candidates.push_back({node, own});
  }
  return candidates;
}

bool TagIn(Graph& graph, int64_t budget) {
  std::vector<Candidate> candidates = Candidates(graph);
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::bytes);
  Rewriter rewriter(graph);
  int64_t total = 0;
  for (const Candidate& candidate : candidates) {
    if (budget > 0 && total + candidate.bytes > budget) continue;
    total += candidate.bytes;
    SetMemoryTag(rewriter, candidate.node, MemoryTag::kMustCpuOffload);
  }
  return total > 0;
}

}  // namespace

Result<Changed> TagOffload::Run(Module& module) {
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  const auto budget =
      options_.budget_gb > 0 ? static_cast<int64_t>(std::ceil(options_.budget_gb * kGibibyte)) : 0;
  bool changed = false;
  for (const GraphId id : module.programs())
    changed |= TagIn(module.graph(id), budget);
  return Changed(changed);
}

}  // namespace strata
