#include "diff/compare/relations.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "diff/compare/clones.h"
#include "diff/compare/split_replacement.h"
#include "diff/compare/value_numbers.h"
#include "diff/graph/union_find.h"
#include "ir/copies.h"

namespace strata {
namespace {

class RelationFinder {
 public:
  RelationFinder(const Listing& before, const Listing& after, const Matching& matching)
      : before_(before), after_(after), matching_(matching) {
    for (Side side : {kBefore, kAfter}) {
      related_[side].assign(matching.labels(side).size(), false);
      for (EntityId i : matching.labels(side).ids())
        num_unmatched_[side] += matching.matched(side, i) ? 0 : 1;
    }
  }

  std::vector<Relation> Run() {
    FindMerges();
    FindClones();
    FindKindChanges(kBefore, RelationKind::kBecameInput);
    FindKindChanges(kAfter, RelationKind::kBecameCompute);
    FindReplacements();
    std::ranges::stable_sort(relations_, {},
                             [](const Relation& relation) { return relation.before[0].index; });
    return std::move(relations_);
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  static Side Other(Side side) { return 1 - side; }
  EntityKind KindOf(Side side, EntityId i) const { return matching_.labels(side).kind[i]; }
  bool IsOpen(Side side, EntityId i) const {
    return !matching_.matched(side, i) && !related_[side][i];
  }

  void FindClones() {
    if (num_unmatched_[kAfter] == 0) return;
    std::map<EntityId, std::vector<EntityId>> copies_of;
    for (const Clone& clone : strata::FindClones(after_, matching_)) {
      related_[kAfter][clone.copy] = true;
      copies_of[clone.original].push_back(clone.copy);
    }
    for (const auto& [original, copies] : copies_of) {
      Relation relation{
          RelationKind::kClone, {{matching_.partner(kAfter, original)}}, {{original}}, 0.97};
      for (EntityId copy : copies)
        relation.after.push_back({copy});
      relations_.push_back(std::move(relation));
    }
  }

  /// A deleted node is merged into its equal if what used it uses that one now.
  void FindMerges() {
    if (num_unmatched_[kBefore] == 0) return;
    const IdVector<EntityId, uint64_t> numbers = ValueNumbers(matching_.labels(kBefore));
    const std::map<EntityId, std::vector<EntityId>> equals =
        EqualsOfMatched(matching_, kBefore, numbers);
    std::vector<std::pair<EntityId, EntityId>> candidates;  // a deleted node, a kept one
    for (const auto& [kept, extras] : equals) {
      for (EntityId extra : extras)
        candidates.emplace_back(extra, kept);
    }
    std::ranges::sort(candidates, std::greater<>());  // users before what they use
    std::map<EntityId, std::vector<EntityId>> merged;
    for (auto [extra, kept] : candidates) {
      bool confirmed = false, contradicted = false, is_read = false;
      for (const Labels::Edge& user : matching_.labels(kBefore).users(extra)) {
        const EntityId new_user = matching_.partner(kBefore, user.entity);
        if (!new_user.valid()) {
          confirmed |= related_[kBefore][user.entity];
          continue;
        }
        if (!matching_.SlotsAgree(kBefore, user.entity)) continue;
        // Several equal nodes may have been kept: the one that is read counts.
        const auto operands = matching_.labels(kAfter).operands(new_user);
        const EntityId operand =
            Index(user.slot) < operands.size() ? operands[Index(user.slot)].entity : EntityId{};
        const EntityId origin = !operand.valid() ? EntityId{} : matching_.partner(kAfter, operand);
        const bool equal = origin.valid() && numbers[origin] == numbers[extra];
        if (!equal || (is_read && origin != kept)) {
          contradicted = true;
          break;
        }
        kept = origin;
        is_read = confirmed = true;
      }
      if (!confirmed || contradicted) continue;
      related_[kBefore][extra] = true;
      merged[kept].push_back(extra);
    }
    for (auto& [kept, extras] : merged) {
      std::ranges::sort(extras);
      Relation relation{RelationKind::kMerge, {{kept}}, {{matching_.partner(kBefore, kept)}}, 0.97};
      for (EntityId extra : extras)
        relation.before.push_back({extra});
      relations_.push_back(std::move(relation));
    }
  }

  /// What stands on the other side where matched users of `i` read it: one unmatched node, or
  /// several of one value, of which the first; none when users disagree or there are none.
  EntityId StandIn(Side side, EntityId i) const {
    EntityId stand_in;
    for (const Labels::Edge& user : matching_.labels(side).users(i)) {
      const EntityId image = matching_.partner(side, user.entity);
      if (!image.valid() || !matching_.SlotsAgree(side, user.entity)) continue;
      const auto operands = matching_.labels(Other(side)).operands(image);
      if (Index(user.slot) >= operands.size()) return {};
      const EntityId here = operands[Index(user.slot)].entity;
      if (!stand_in.valid() || here == stand_in) {
        stand_in = here;
        continue;
      }
      const EntityId one = SourceOf(Other(side), stand_in), other = SourceOf(Other(side), here);
      if (!SameValue(Other(side), one, other)) return {};
      stand_in = std::min(one, other);
    }
    return stand_in.valid() && IsOpen(Other(side), stand_in) ? stand_in : EntityId{};
  }

  /// What an unmatched node that hands on its operand hands on.
  EntityId SourceOf(Side side, EntityId i) const {
    const Listing& listing = side == kBefore ? before_ : after_;
    while (IsOpen(side, i) && matching_.labels(side).operands(i).size() == 1 &&
           IsPlainCopy(listing.target({i})))
      i = matching_.labels(side).operands(i)[0].entity;
    return i;
  }

  /// Unmatched nodes that do the same with the same operands.
  bool SameValue(Side side, EntityId a, EntityId b) const {
    const Labels& labels = matching_.labels(side);
    return a == b || (IsOpen(side, a) && IsOpen(side, b) && labels.type[a] == labels.type[b] &&
                      KindOf(side, a) == EntityKind::kCompute &&
                      std::ranges::equal(labels.operands(a), labels.operands(b), {},
                                         &Labels::Edge::entity, &Labels::Edge::entity));
  }

  /// A computation of `side` for which an input stands in on the other side.
  void FindKindChanges(Side side, RelationKind kind) {
    for (EntityId i : matching_.labels(side).ids()) {
      const bool has_kind =
          KindOf(side, i) == EntityKind::kCompute || KindOf(side, i) == EntityKind::kConstant;
      if (!IsOpen(side, i) || !has_kind) continue;
      const EntityId input = StandIn(side, i);
      if (!input.valid() || KindOf(Other(side), input) != EntityKind::kInput) continue;
      if (StandIn(Other(side), input) != i) continue;
      related_[side][i] = true;
      related_[Other(side)][input] = true;
      const EntityId before = side == kBefore ? i : input, after = side == kBefore ? input : i;
      relations_.push_back({kind, {{before}}, {{after}}, 0.95});
    }
  }

  bool CanBeReplaced(Side side, EntityId i) const {
    return IsOpen(side, i) && KindOf(side, i) != EntityKind::kInput &&
           KindOf(side, i) != EntityKind::kOutput;
  }

  /// Entities of both sides as elements of one UnionFind.
  size_t Element(Side side, EntityId i) const {
    return Index(i.index) + (side == kBefore ? 0 : matching_.labels(kBefore).size());
  }

  size_t NumElements() const {
    return matching_.labels(kBefore).size() + matching_.labels(kAfter).size();
  }

  /// Connected regions of deleted and of inserted nodes. A region of both sides is a replacement if
  /// most of its consumers read one by the other at the same operand slots, and if both sides read
  /// a value in common.
  void FindReplacements() {
    UnionFind regions(NumElements());
    JoinNeighbours(regions);
    const std::vector<Vote> votes = JoinAcrossSides(regions);
    for (Relation& relation : RegionsOfBothSides(regions, votes)) {
      if (!ShareInputs(relation)) continue;
      for (Relation& part : SplitReplacement(before_, after_, matching_, relation)) {
        part.kind = RelationKind::kReplace;
        part.confidence = 0.9;
        relations_.push_back(std::move(part));
      }
    }
  }

  /// Calls `fn(side, i)` for each node that a replacement may contain.
  template <class Fn>
  void ForEachReplaceable(Fn&& fn) const {
    for (Side side : {kBefore, kAfter}) {
      for (EntityId i : matching_.labels(side).ids()) {
        if (CanBeReplaced(side, i)) fn(side, i);
      }
    }
  }

  void JoinNeighbours(UnionFind& regions) const {
    ForEachReplaceable([&](Side side, EntityId i) {
      for (const Labels::Edge& operand : matching_.labels(side).operands(i)) {
        if (CanBeReplaced(side, operand.entity))
          regions.Join(Element(side, i), Element(side, operand.entity));
      }
    });
  }

  /// An element, and +1 if a consumer of it reads an unmatched node instead on the other side, else
  /// -1.
  using Vote = std::pair<size_t, int32_t>;

  /// Joins nodes that the same consumer reads at the same operand slot.
  std::vector<Vote> JoinAcrossSides(UnionFind& regions) const {
    std::vector<Vote> votes;
    ForEachReplaceable([&](Side side, EntityId i) {
      for (const Labels::Edge& user : matching_.labels(side).users(i)) {
        const EntityId image = matching_.partner(side, user.entity);
        if (!image.valid() || !matching_.SlotsAgree(side, user.entity)) continue;
        const auto operands = matching_.labels(Other(side)).operands(image);
        const size_t slot = Index(user.slot);
        const bool is_new =
            slot < operands.size() && CanBeReplaced(Other(side), operands[slot].entity);
        if (is_new) regions.Join(Element(side, i), Element(Other(side), operands[slot].entity));
        votes.emplace_back(Element(side, i), is_new ? 1 : -1);
      }
    });
    return votes;
  }

  /// The regions with nodes of each side and without a majority of votes against them.
  std::vector<Relation> RegionsOfBothSides(UnionFind& regions, const std::vector<Vote>& votes) {
    struct Region {
      std::array<bool, 2> has{};
      int32_t votes = 0;
    };
    std::vector<Region> region_of(NumElements());  // by root
    ForEachReplaceable(
        [&](Side side, EntityId i) { region_of[regions.Find(Element(side, i))].has[side] = true; });
    for (const auto& [element, vote] : votes)
      region_of[regions.Find(element)].votes += vote;
    std::map<size_t, Relation> by_root;
    ForEachReplaceable([&](Side side, EntityId i) {
      const size_t root = regions.Find(Element(side, i));
      const Region& region = region_of[root];
      if (!region.has[kBefore] || !region.has[kAfter] || region.votes < 0) return;
      (side == kBefore ? by_root[root].before : by_root[root].after).push_back({i});
    });
    std::vector<Relation> found;
    for (auto& [root, relation] : by_root)
      found.push_back(std::move(relation));
    return found;
  }

  /// True if both regions read some value in common, or one of them reads nothing (a constant).
  bool ShareInputs(const Relation& relation) const {
    std::vector<EntityId> images, operands;
    for (EntityId id : relation.before) {
      for (const Labels::Edge& operand : matching_.labels(kBefore).operands(id)) {
        if (matching_.matched(kBefore, operand.entity)) {
          images.push_back(matching_.partner(kBefore, operand.entity));
        }
      }
    }
    for (EntityId id : relation.after) {
      for (const Labels::Edge& operand : matching_.labels(kAfter).operands(id)) {
        if (matching_.matched(kAfter, operand.entity)) operands.push_back(operand.entity);
      }
    }
    if (images.empty() || operands.empty()) return true;
    std::ranges::sort(images);
    return std::ranges::any_of(
        operands, [&](EntityId operand) { return std::ranges::binary_search(images, operand); });
  }

  const Listing& before_;
  const Listing& after_;
  const Matching& matching_;
  std::array<IdVector<EntityId, bool>, 2> related_;
  std::array<int32_t, 2> num_unmatched_{};
  std::vector<Relation> relations_;
};

}  // namespace

std::vector<Relation> FindRelations(const Listing& before, const Listing& after,
                                    const Matching& matching) {
  return RelationFinder(before, after, matching).Run();
}

}  // namespace strata
