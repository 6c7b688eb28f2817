#include "scene/paths.h"

#include <algorithm>

#include <fmt/format.h>

namespace strata::internal {
namespace {

constexpr int kMaxDepth = 24;

// Attributes of nodes, which the passes `split-stages` and `ep-chunk` set.
constexpr std::string_view kStage = "stage", kChunk = "chunk_id", kRegion = "chunked_region_fqn";

/// Whether nodes of the graph are in more than one stage.
bool HasStages(const Listing& listing) {
  std::string_view first;
  for (const EntityId id : listing.ids()) {
    const std::string_view stage = listing.graph(id).attribute(listing[id].node, kStage);
    if (first.empty()) first = stage;
    if (stage != first && !stage.empty()) return true;
  }
  return false;
}

/// A hostile path must not nest without end: what is deeper becomes part of the last name.
void Flatten(std::string& path) {
  size_t dot = path.find('.');
  for (int depth = 1; dot != std::string::npos && depth < kMaxDepth; ++depth)
    dot = path.find('.', dot + 1);
  if (dot != std::string::npos)
    std::replace(path.begin() + static_cast<std::ptrdiff_t>(dot), path.end(), '.', '/');
}

}  // namespace

ScenePaths::ScenePaths(const GraphDiff& diff)
    : diff_(diff), has_stages_(HasStages(diff.before) || HasStages(diff.after)) {}

ScenePaths::Parts ScenePaths::PartsOf(bool after, EntityId id) const {
  const Listing& listing = after ? diff_.after : diff_.before;
  const Entity& entity = listing[id];
  const Graph& graph = listing.graph(id);
  Parts parts;
  parts.after = after;
  parts.scope = listing.scope_of(id).index;
  parts.is_input = entity.kind == EntityKind::kInput || entity.kind == EntityKind::kConstant;
  parts.module = graph.module().str(graph.node(entity.node).module);
  if (has_stages_) parts.stage = graph.attribute(entity.node, kStage);
  parts.chunk = graph.attribute(entity.node, kChunk);
  parts.region = graph.attribute(entity.node, kRegion);
  return parts;
}

std::string ScenePaths::PathOf(const Parts& parts) const {
  const Listing& listing = parts.after ? diff_.after : diff_.before;
  std::string path = listing.scopes()[ScopeId{parts.scope}].prefix;
  std::ranges::replace(path, '/', '.');
  if (!parts.stage.empty()) path += fmt::format("stage {}.", parts.stage);
  const std::string_view region = parts.region, module = parts.module;
  const bool is_chunk = !parts.chunk.empty() && !region.empty() && module.starts_with(region) &&
                        (module.size() == region.size() || module[region.size()] == '.');
  if (is_chunk) {
    path +=
        fmt::format("{}.{}{}{}", region, kChunkLabel, parts.chunk, module.substr(region.size()));
  } else if (!module.empty()) {
    path += module;
  } else if (parts.is_input) {
    path += "inputs";
  } else if (!path.empty()) {
    path.pop_back();  // the dot behind the name of a body or stage
  }
  Flatten(path);
  return path;
}

}  // namespace strata::internal
