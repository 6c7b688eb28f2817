#include "passes/expert/overlap_region.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/collectives.h"
#include "passes/expert/chunk_roots.h"
#include "passes/expert/exchange_labels.h"
#include "passes/memory/selectors.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

bool IsTokenLabel(std::string_view label) {
  return label == "dispatch" || label == "combine";
}

}  // namespace

Result<std::vector<ChunkBodies>> CollectChunkBodies(const Graph& graph, std::string_view pattern) {
  std::vector<ChunkBodies> regions;
  std::map<std::pair<std::string_view, bool>, size_t> index;
  for (const NodeId node : graph.nodes()) {
    if (graph.attribute(node, kChunkRoleAttribute) != kBodyRole) continue;
    const std::string_view root = graph.attribute(node, kChunkedRegionAttribute);
    const std::string_view id = graph.attribute(node, kChunkIdAttribute);
    size_t chunk = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), chunk);
    constexpr size_t kMost = 1024;
    if (root.empty() || id.empty() || error != std::errc() || end != id.data() + id.size() ||
        chunk >= kMost) {
      return Error("a node of a chunk has incomplete chunk metadata: graph {}: node {} ({})",
                   graph.name_text(), graph.name(node), graph.op(node));
    }
    if (!MatchesModule(pattern, root)) continue;
    const auto [found, is_new] = index.try_emplace({root, IsBackward(graph, node)}, regions.size());
    if (is_new) {
      regions.push_back({.root = graph.module().strings().Find(root),
                         .is_backward = IsBackward(graph, node),
                         .chunks = {}});
    }
    ChunkBodies& region = regions[found->second];
    if (region.chunks.size() <= chunk) region.chunks.resize(chunk + 1);
    region.chunks[chunk].push_back(node);
  }
  return regions;
}

std::string OverlapRegion::Where(const Graph& graph) const {
  return fmt::format("graph {}: {}, {}", graph.name_text(), graph.module().str(bodies_->root),
                     bodies_->is_backward ? "backward" : "forward");
}

std::vector<size_t> OverlapRegion::ChunkOrder() const {
  std::vector<size_t> order;
  for (size_t chunk = 0; chunk < bodies_->chunks.size(); ++chunk)
    order.push_back(chunk);
  if (bodies_->is_backward) std::ranges::reverse(order);
  return order;
}

Result<std::optional<OverlapRegion>> OverlapRegion::Make(const Graph& graph,
                                                         const ExecutionOrder& order,
                                                         const ChunkBodies& bodies) {
  OverlapRegion region(bodies);
  const bool is_complete =
      bodies.chunks.size() >= 2 && std::ranges::none_of(bodies.chunks, &std::vector<NodeId>::empty);
  if (!is_complete) return Error("a region must have both chunks: {}", region.Where(graph));
  region.AddNodes(graph, order);
  region.FindMarkers(graph);
  if (std::ranges::all_of(region.markers_, &std::vector<size_t>::empty))
    return std::optional<OverlapRegion>();
  STRATA_RETURN_IF_ERROR(region.CheckLabels(graph));
  STRATA_RETURN_IF_ERROR(region.CheckWaits(graph, order));
  region.FindBefore(graph, order);
  return std::optional<OverlapRegion>(std::move(region));
}

void OverlapRegion::AddNodes(const Graph& graph, const ExecutionOrder& order) {
  std::vector<std::pair<NodeId, size_t>> all;
  for (size_t chunk = 0; chunk < bodies_->chunks.size(); ++chunk)
    for (const NodeId node : bodies_->chunks[chunk])
      all.emplace_back(node, chunk);
  std::ranges::sort(all, {}, [&](const auto& entry) { return order.position(entry.first); });
  for (const auto& [node, chunk] : all) {
    nodes_.push_back(node);
    chunk_.push_back(chunk);
    is_communication_.push_back(TraitsOf(graph.op(node)).collective || IsWait(graph, node));
    is_count_sync_.push_back(BaseName(graph.op(node)) == "_to_copy" &&
                             graph.attribute(node, kCountSyncAttribute) == "dispatch");
  }
  is_marker_.assign(nodes_.size(), false);
  markers_.resize(bodies_->chunks.size());
}

void OverlapRegion::FindBefore(const Graph& graph, const ExecutionOrder& order) {
  std::unordered_map<NodeId, size_t> own;
  for (size_t i = 0; i < nodes_.size(); ++i)
    own.emplace(nodes_[i], i);
  const auto is_of_other_region = [&](NodeId node) {
    return graph.attribute(node, kChunkRoleAttribute) == kBodyRole;
  };
  // What nodes of no region need, found once.
  std::unordered_map<NodeId, std::vector<size_t>> through;
  const auto look_through = [&](const auto& self, NodeId node) -> const std::vector<size_t>& {
    const auto [found, is_new] = through.try_emplace(node);
    if (!is_new) return found->second;
    std::vector<size_t> needed;
    for (const NodeId before : order.Before(node)) {
      if (const auto mine = own.find(before); mine != own.end()) {
        needed.push_back(mine->second);
      } else if (graph.node(before).kind == NodeKind::kCall && !is_of_other_region(before) &&
                 order.position(before) > order.position(nodes_.front())) {
        const std::vector<size_t>& hidden = self(self, before);
        needed.insert(needed.end(), hidden.begin(), hidden.end());
      }
    }
    std::ranges::sort(needed);
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    std::vector<size_t>& kept = through[node];
    kept = std::move(needed);
    return kept;
  };
  for (const NodeId node : nodes_)
    before_.push_back(look_through(look_through, node));
}

void OverlapRegion::FindMarkers(const Graph& graph) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeId node = nodes_[i];
    const std::string_view label = graph.attribute(node, kExchangeAttribute);
    if (!IsTokenExchange(graph, node) || !IsTokenLabel(label)) continue;
    is_marker_[i] = true;
    markers_[chunk_[i]].push_back(i);
  }
}

Status OverlapRegion::CheckWaits(const Graph& graph, const ExecutionOrder& order) {
  std::unordered_map<NodeId, size_t> own;
  for (size_t i = 0; i < nodes_.size(); ++i)
    own.emplace(nodes_[i], i);
  std::vector<bool> is_wait(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!is_marker_[i]) continue;
    std::vector<size_t> waits;
    for (const Use use : graph.uses(graph.result(nodes_[i]))) {
      const auto found = own.find(use.user);
      if (found != own.end() && IsWait(graph, use.user) && chunk_[found->second] == chunk_[i])
        waits.push_back(found->second);
    }
    if (waits.size() != 1) {
      return Error("expected one token-exchange wait: {}: {} has {}", Where(graph),
                   graph.name(nodes_[i]), waits.size());
    }
    if (order.position(nodes_[waits[0]]) < order.position(nodes_[i])) {
      return Error("expected the wait to appear after its launch: {}: {} waits for {}",
                   Where(graph), graph.name(nodes_[waits[0]]), graph.name(nodes_[i]));
    }
    is_wait[waits[0]] = true;
    waits_.push_back(
        {nodes_[waits[0]], std::string(graph.attribute(nodes_[i], kExchangeAttribute))});
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (is_marker_[i] || is_wait[i] || graph.attribute(nodes_[i], kExchangeAttribute).empty())
      continue;
    return Error("a non-marker node is labelled as a token exchange: {}: {} ({})", Where(graph),
                 graph.name(nodes_[i]), graph.op(nodes_[i]));
  }
  return Ok();
}

Status OverlapRegion::CheckLabels(const Graph& graph) const {
  const auto labels = [&](size_t chunk) {
    std::vector<std::string_view> texts;
    for (const size_t marker : markers_[chunk])
      texts.push_back(graph.attribute(nodes_[marker], kExchangeAttribute));
    return texts;
  };
  for (size_t chunk = 1; chunk < markers_.size(); ++chunk) {
    if (markers_[chunk].empty() != markers_[0].empty())
      return Error("only one chunk exchanges tokens: {}", Where(graph));
    if (markers_[chunk].size() != markers_[0].size()) {
      return Error("chunks must have matching EP all-to-all counts: {}: {} and {}", Where(graph),
                   markers_[0].size(), markers_[chunk].size());
    }
    if (labels(chunk) != labels(0)) {
      return Error(
          "chunks must have matching token-exchange labels: {}: chunk {} differs from "
          "chunk 0",
          Where(graph), chunk);
    }
  }
  return Ok();
}

}  // namespace strata
