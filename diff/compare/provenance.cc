#include "diff/compare/provenance.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "diff/graph/union_find.h"

namespace strata {
namespace {

class ProvenanceReader {
 public:
  ProvenanceReader(const Listing& before, const Listing& after, const Matching& matching,
                   std::span<const Provenance> provenance)
      : before_(before),
        after_(after),
        matching_(matching),
        groups_(before.ids().size() + after.ids().size()) {
    for (const Provenance& record : provenance)
      provenance_.emplace(record.node, &record);
    for (EntityId id : before.ids()) {
      if (!before[id].element.valid()) entity_of_.emplace(StableIdOf(before, id), id);
    }
  }

  std::vector<Relation> Run() {
    for (EntityId id : after_.ids()) {
      if (!matching_.matched(kAfter, id)) Read(id);
    }
    JoinElements(kBefore, before_);
    JoinElements(kAfter, after_);
    AddReplacements();
    std::ranges::stable_sort(relations_, {},
                             [](const Relation& relation) { return relation.before[0].index; });
    return std::move(relations_);
  }

 private:
  size_t Place(Side side, EntityId i) const {
    return static_cast<size_t>(i.index) + (side == kBefore ? 0 : before_.ids().size());
  }
  static StableId StableIdOf(const Listing& listing, EntityId id) {
    return listing.graph(id).node(listing[id].node).stable_id;
  }

  void Read(EntityId id) {
    if (after_[id].element.valid()) return;
    const auto record = provenance_.find(StableIdOf(after_, id));
    if (record == provenance_.end()) return;
    std::vector<EntityId> ancestors;
    Collect(*record->second, 0, ancestors);
    if (record->second->origin == Origin::kCloned && ancestors.size() == 1 &&
        matching_.matched(kBefore, ancestors[0])) {
      copies_[ancestors[0]].push_back(id);
      return;
    }
    for (EntityId ancestor : ancestors) {
      if (matching_.matched(kBefore, ancestor)) continue;
      groups_.Join(Place(kBefore, ancestor), Place(kAfter, id));
    }
  }

  void Collect(const Provenance& record, int depth, std::vector<EntityId>& ancestors) const {
    constexpr int kMaxDepth = 16;
    for (StableId id : record.from) {
      if (const auto entity = entity_of_.find(id); entity != entity_of_.end()) {
        ancestors.push_back(entity->second);
      } else if (const auto older = provenance_.find(id);
                 older != provenance_.end() && depth < kMaxDepth) {
        Collect(*older->second, depth + 1, ancestors);
      }
    }
  }

  /// The elements of a tuple are where their node is.
  void JoinElements(Side side, const Listing& listing) {
    for (EntityId id : listing.ids()) {
      if (!listing[id].element.valid() || matching_.matched(side, id)) continue;
      const EntityId node = listing.Find(listing[id].graph, listing[id].node);
      if (!matching_.matched(side, node)) groups_.Join(Place(side, node), Place(side, id));
    }
  }

  void AddReplacements() {
    std::map<size_t, Relation> groups;  // by root
    for (Side side : {kBefore, kAfter}) {
      for (EntityId i : (side == kBefore ? before_ : after_).ids()) {
        if (matching_.matched(side, i)) continue;
        Relation& relation = groups[groups_.Find(Place(side, i))];
        (side == kBefore ? relation.before : relation.after).push_back({i});
      }
    }
    for (auto& [root, relation] : groups) {
      if (relation.before.empty() || relation.after.empty()) continue;
      relation.kind = KindOf(relation);
      relations_.push_back(std::move(relation));
    }
    for (auto& [original, copies] : copies_) {
      Relation relation{
          RelationKind::kClone, {{original}}, {{matching_.partner(kBefore, original)}}, 1};
      relation.after.insert(relation.after.end(), copies.begin(), copies.end());
      relations_.push_back(std::move(relation));
    }
  }

  RelationKind KindOf(const Relation& relation) const {
    if (relation.before.size() != 1 || relation.after.size() != 1) return RelationKind::kReplace;
    const EntityKind before = before_[relation.before[0]].kind;
    const EntityKind after = after_[relation.after[0]].kind;
    const auto gives = [](EntityKind kind) {
      return kind == EntityKind::kCompute || kind == EntityKind::kConstant;
    };
    if (gives(before) && after == EntityKind::kInput) return RelationKind::kBecameInput;
    if (before == EntityKind::kInput && gives(after)) return RelationKind::kBecameCompute;
    return RelationKind::kReplace;
  }

  const Listing &before_, &after_;
  const Matching& matching_;
  std::unordered_map<StableId, const Provenance*> provenance_;
  std::unordered_map<StableId, EntityId> entity_of_;  // of the before graph
  UnionFind groups_;                                  // entities of both sides
  std::map<EntityId, std::vector<EntityId>> copies_;  // by original
  std::vector<Relation> relations_;
};

}  // namespace

std::vector<Relation> RelationsOfProvenance(const Listing& before, const Listing& after,
                                            const Matching& matching,
                                            std::span<const Provenance> provenance) {
  return ProvenanceReader(before, after, matching, provenance).Run();
}

}  // namespace strata
