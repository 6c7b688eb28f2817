#include "diff/pattern/hunk_places.h"

#include <ranges>

#include "diff/graph/hash.h"
#include "diff/graph/module_path.h"
#include "diff/pattern/hunk_items.h"
#include "ir/module.h"

namespace strata {

HunkPlaces::HunkPlaces(const Matching& matching, const Layers& layers, const GraphDiff& diff)
    : matching_(matching), layers_(layers), diff_(diff) {
  FindAnchors();
}

/// For each inserted node a node of the before graph near it: up the edges, and down.
void HunkPlaces::FindAnchors() {
  if (diff_.inserted.empty()) return;
  const Labels& labels = matching_.labels(kAfter);
  for (IdVector<EntityId, EntityId>& anchors : anchors_)
    anchors.assign(labels.size(), {});
  for (EntityId id : diff_.inserted) {
    EntityId& anchor = anchors_[0][id];
    for (const Labels::Edge& operand : labels.operands(id)) {
      if (!anchor.valid()) anchor = ParameterAt(operand.entity);
    }
    anchors_[1][id] = anchor;
    for (const Labels::Edge& operand : labels.operands(id))
      if (!anchor.valid()) anchor = AnchorAt(0, operand.entity);
  }
  for (EntityId id : diff_.inserted | std::views::reverse) {
    EntityId& anchor = anchors_[1][id];
    for (const Labels::Edge& user : labels.users(id))
      if (!anchor.valid()) anchor = AnchorAt(1, user.entity);
  }
}

/// The parameter of the before graph that an input or a constant is, which states its module.
EntityId HunkPlaces::ParameterAt(EntityId after) const {
  if (!matching_.matched(kAfter, after)) return {};
  const EntityId before = matching_.partner(kAfter, after);
  return layers_.is_parameter(before) ? before : EntityId{};
}

EntityId HunkPlaces::AnchorAt(size_t way, EntityId after) const {
  if (!matching_.matched(kAfter, after)) return anchors_[way][after];
  const EntityId before = matching_.partner(kAfter, after);
  return matching_.labels(kBefore).kind[before] == EntityKind::kCompute ? before : EntityId{};
}

HunkPlace HunkPlaces::PlaceOf(const HunkItem& item, size_t way) const {
  EntityId anchor = item.before;
  if (!item.before.valid()) {
    const std::string_view path = PathOfInserted(item.after);
    // By its shape alone: no node of the before graph has its role.
    if (!path.empty()) return {path, LayerOf(path), HashText(ModulePathShape(path))};
    anchor = anchors_[way][item.after];
    if (!anchor.valid() || layers_.layer(anchor).empty()) {
      const EntityId other = anchors_[1 - way][item.after];
      if (other.valid() && !layers_.layer(other).empty()) anchor = other;
    }
    if (!anchor.valid()) return {};
  }
  return {layers_.path(anchor), layers_.layer(anchor), layers_.role(anchor)};
}

std::string_view HunkPlaces::PathOfInserted(EntityId id) const {
  if (layers_.by_structure()) return {};
  const Graph& graph = diff_.after.graph(id);
  return graph.module().str(graph.node(diff_.after[id].node).module);
}

std::string_view HunkPlaces::LayerOfItem(const HunkItem& item) const {
  const std::string_view path =
      item.before.valid() ? std::string_view() : PathOfInserted(item.after);
  return path.empty() ? PlaceOf(item, 0).layer : LayerOf(path);
}

HunkPlace HunkPlaces::CommonPlace(const HunkItems& items, std::span<const int32_t> members,
                                  const HunkItem& first, size_t way) const {
  HunkPlace place = PlaceOf(first, way);
  bool known = !place.path.empty();
  for (const int32_t member : members) {
    const HunkItem& item = items[static_cast<size_t>(member)];
    if (item.consumer && !first.consumer) continue;
    const std::string_view path = PlaceOf(item, way).path;
    if (path.empty()) continue;
    place.path = known ? CommonModule(place.path, path) : path;
    known = true;
  }
  return place;
}

}  // namespace strata
