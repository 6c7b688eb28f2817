#include "passes/expert/eager_chunks.h"

#include <optional>
#include <string>
#include <string_view>

#include "ir/gradient_sums.h"
#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/core/chunk_attributes.h"
#include "passes/expert/chunk_roots.h"

namespace strata {
namespace {

/// The region whose chunks `sum` adds up; none: it adds values of one chunk, or others.
std::optional<std::string> SummedRegion(const Graph& graph, NodeId sum) {
  std::optional<std::string_view> region, chunk;
  bool is_of_region = true, is_of_several = false;
  graph.ForEachOperand(sum, [&](ValueId term) {
    const NodeId def = graph.value(term).def;
    const std::string_view root = graph.attribute(def, kChunkedRegionAttribute);
    const std::string_view id = graph.attribute(def, kChunkIdAttribute);
    const std::string_view role = graph.attribute(def, kChunkRoleAttribute);
    is_of_region &= role == kBodyRole || !graph.attribute(def, kChunkProofAttribute).empty();
    is_of_region &= !region || *region == root;
    is_of_several |= id.empty() || (chunk && *chunk != id);
    region = root;
    chunk = id;
  });
  return is_of_region && is_of_several && region ? std::optional<std::string>(*region)
                                                 : std::nullopt;
}

}  // namespace

void LabelChunkSums(Graph& graph) {
  Rewriter rewriter(graph);
  for (const NodeId node : graph.nodes()) {
    if (!IsGradientSum(graph, node)) continue;
    const std::optional<std::string> region = SummedRegion(graph, node);
    if (!region) continue;
    rewriter.SetModule(node, ModuleAround(*region));
    rewriter.SetAttribute(node, kChunkedRegionAttribute, *region);
    rewriter.SetAttribute(node, kChunkRoleAttribute, kMaterializationRole);
    rewriter.SetAttribute(node, kChunkProofAttribute, kBoundarySumProof);
    rewriter.SetAttribute(node, kChunkIdAttribute, "");
  }
}

}  // namespace strata
