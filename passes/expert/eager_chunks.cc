#include "passes/expert/eager_chunks.h"

#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/by_node.h"
#include "ir/gradient_sums.h"
#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/collectives.h"
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

constexpr int32_t kNoChunk = 0, kSeveral = -1;

/// The chunk that a node is of: from 1, kNoChunk for calls without a label, and kSeveral for what
/// belongs to the whole.
IdVector<NodeId, int32_t> NumberChunks(const Graph& graph) {
  auto chunks = ByNode(graph, kNoChunk);
  std::map<std::pair<std::string_view, std::string_view>, int32_t> numbers;
  for (const NodeId node : graph.nodes()) {
    const std::string_view role = graph.attribute(node, kChunkRoleAttribute);
    if (role == kBodyRole) {
      const std::pair chunk(graph.attribute(node, kChunkedRegionAttribute),
                            graph.attribute(node, kChunkIdAttribute));
      chunks[node] =
          numbers.try_emplace(chunk, static_cast<int32_t>(numbers.size()) + 1).first->second;
    } else if (!role.empty() || graph.node(node).kind == NodeKind::kOutput) {
      chunks[node] = kSeveral;
    }
  }
  return chunks;
}

/// Returns whether any node got a label.
bool LabelBodies(Rewriter& rewriter) {
  const Graph& graph = rewriter.graph();
  const std::vector<NodeId> order = graph.nodes().Snapshot();
  const IdVector<NodeId, int32_t> chunks = NumberChunks(graph);
  auto needs = chunks, serves = chunks;  // the chunks behind a node, and those that need it
  const auto join = [](int32_t& all, int32_t more) {
    if (more != kNoChunk) all = all == kNoChunk || all == more ? more : kSeveral;
  };
  const auto is_open = [&](NodeId node) { return chunks[node] == kNoChunk; };
  for (const NodeId node : order)
    for (const NodeId input : InputsOf(graph, node))
      if (is_open(node)) join(needs[node], needs[input]);
  for (const NodeId node : order | std::views::reverse)
    for (const NodeId input : InputsOf(graph, node))
      if (is_open(input)) join(serves[input], serves[node]);

  std::map<int32_t, NodeId> member;
  for (const NodeId node : order)
    if (chunks[node] > 0) member.try_emplace(chunks[node], node);
  bool changed = false;
  for (const NodeId node : order) {
    if (!is_open(node) || needs[node] <= 0 || needs[node] != serves[node]) continue;
    for (const std::string_view key :
         {kChunkedRegionAttribute, kChunkRoleAttribute, kChunkIdAttribute}) {
      rewriter.SetAttribute(node, key, std::string(graph.attribute(member.at(needs[node]), key)));
    }
    changed = true;
  }
  return changed;
}

}  // namespace

Result<Changed> LabelChunks::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Rewriter rewriter(module.graph(id));
    changed |= LabelBodies(rewriter);
  }
  return changed ? Changed::kYes : Changed::kNo;
}

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
