#include "diff/pattern/hunks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "diff/graph/keyed.h"
#include "diff/graph/union_find.h"
#include "diff/match/fetch_ahead.h"
#include "diff/pattern/hunk_items.h"
#include "diff/pattern/hunk_keys.h"
#include "diff/pattern/hunk_places.h"

namespace strata {
namespace {

/// Joins items to hunks.
class HunkFinder {
 public:
  HunkFinder(const Matching& matching, const HunkItems& items, const GraphDiff& diff)
      : matching_(matching), items_(items), diff_(diff) {}

  HunkMembers Run() {
    UnionFind sets(items_.size());
    JoinEdges(sets);
    JoinConsumers(sets);
    JoinReplacements(sets);
    JoinMoves(sets);
    return MembersOf(sets);
  }

 private:
  /// Calls `fn(item)` for each item that a node reads, but for shared constants.
  template <class Fn>
  void ForEachItemRead(Side side, EntityId id, Fn fn) const {
    for (const Labels::Edge& operand : matching_.labels(side).operands(id)) {
      const EntityId read = operand.entity;
      if (!matching_.matched(side, read) && !IsSharedConstant(matching_, side, read))
        fn(items_.IndexOf(side, read));
    }
  }

  EntityId IdOf(Side side, size_t item) const {
    return side == kBefore ? items_[item].before : items_[item].after;
  }

  /// Prefetches what ForEachItemRead looks up for the node of a later item.
  void FetchItemsRead(Side side, size_t item) const {
    item += static_cast<size_t>(kAhead);
    if (item >= items_.size() || !IdOf(side, item).valid()) return;
    FetchAhead(matching_.labels(side).operands(IdOf(side, item)), [&](EntityId operand) {
      matching_.labels(side).Prefetch(operand);
      return items_.AddressOf(side, operand);
    });
  }

  /// Inserted nodes that touch, deleted nodes that touch.
  void JoinEdges(UnionFind& sets) {
    for (Side side : {kBefore, kAfter}) {
      for (size_t item = 0; item < items_.size(); ++item) {
        FetchItemsRead(side, item);
        const EntityId id = IdOf(side, item);
        if (!id.valid() || items_[item].pair.valid()) continue;
        ForEachItemRead(side, id, [&](size_t other) {
          if (items_.InOneLayer(item, other)) sets.Join(item, other);
        });
      }
    }
  }

  /// A consumer joins what it reads and what it read of one layer; the output would join
  /// everything.
  void JoinConsumers(UnionFind& sets) {
    for (size_t item = 0; item < items_.size(); ++item) {
      const HunkItem& consumer = items_[item];
      if (!consumer.pair.valid()) continue;
      if (matching_.labels(kBefore).kind[consumer.before] == EntityKind::kOutput) continue;
      std::optional<size_t> first;
      const auto join = [&](size_t other) {
        if (!first) first = other;
        if (items_.InOneLayer(*first, other)) sets.Join(item, other);
      };
      ForEachItemRead(kBefore, consumer.before, join);
      ForEachItemRead(kAfter, consumer.after, join);
    }
  }

  /// All of a replaced region; one that spans layers falls apart into the layers in which both
  /// sides are, and what is elsewhere goes with the first of them.
  void JoinReplacements(UnionFind& sets) {
    for (const Relation& relation : diff_.relations) {
      if (relation.kind == RelationKind::kClone || relation.kind == RelationKind::kMerge) continue;
      struct First {
        std::optional<size_t> before, after;
        bool has_both() const { return before && after; }
      };
      std::map<std::string_view, First> first_in_layer;
      std::vector<size_t> replaced;
      const auto add = [&](Side side, EntityId id) {
        const size_t item = replaced.emplace_back(items_.IndexOf(side, id));
        First& first = first_in_layer[items_.LayerOfItem(item)];
        std::optional<size_t>& of_side = side == kBefore ? first.before : first.after;
        if (!of_side) of_side = item;
      };
      for (EntityId id : relation.before)
        add(kBefore, id);
      for (EntityId id : relation.after)
        add(kAfter, id);
      size_t elsewhere = replaced[0];
      for (const auto& [layer, first] : first_in_layer) {
        if (layer.empty() || !first.has_both()) continue;
        elsewhere = *first.before;
        break;
      }
      for (const size_t item : replaced) {
        const First& first = first_in_layer.at(items_.LayerOfItem(item));
        sets.Join(first.has_both() ? *first.before : elsewhere, item);
      }
    }
  }

  /// Nodes that only moved, and are neighbours in both orders.
  void JoinMoves(UnionFind& sets) {
    for (size_t item = 0; item < items_.size(); ++item) {
      const HunkItem& moved = items_[item];
      if (!OnlyMoved(moved) || moved.before.index == 0 || moved.after.index == 0) continue;
      const auto other = items_.Find(kBefore, EntityId{moved.before.index - 1});
      if (!other || other != items_.Find(kAfter, EntityId{moved.after.index - 1})) continue;
      if (OnlyMoved(items_[*other]) && items_.InOneLayer(item, *other)) sets.Join(item, *other);
    }
  }
  bool OnlyMoved(const HunkItem& item) const {
    return item.pair.valid() && !diff_.pairs[item.pair].status.changed;
  }

  HunkMembers MembersOf(UnionFind& sets) const {
    // The root of a set is its first item.
    std::vector<HunkId> hunk_of_item(items_.size());
    int32_t num_hunks = 0;
    for (size_t item = 0; item < items_.size(); ++item) {
      const size_t root = sets.Find(item);
      hunk_of_item[item] = root == item ? HunkId{num_hunks++} : hunk_of_item[root];
    }
    HunkMembers hunks(hunk_of_item, static_cast<size_t>(num_hunks));
    SortByPlace(hunks);
    return hunks;
  }

  /// By the first node in before order; an inserted node stands behind the last pair before it.
  void SortByPlace(HunkMembers& hunks) const {
    IdVector<EntityId, EntityId> before_of_after(diff_.pair_of_after.size());
    EntityId last;
    for (EntityId id : IdsOf(before_of_after)) {
      const PairId pair = diff_.pair_of_after[id];
      if (pair.valid()) last = diff_.pairs[pair].before;
      before_of_after[id] = last;
    }
    const auto place_of = [&](int32_t member) {
      const HunkItem& item = items_[static_cast<size_t>(member)];
      const EntityId before = item.before.valid() ? item.before : before_of_after[item.after];
      const EntityId after = item.before.valid() ? EntityId{} : item.after;
      return static_cast<uint64_t>(before.index + 1) << 32 | static_cast<uint32_t>(after.index + 1);
    };
    // Places are looked up once: the largest hunk may be nearly everything.
    std::vector<KeyedBy<int32_t>> by_place;
    for (const HunkId hunk : Ids<HunkId>(hunks.num_hunks())) {
      const std::span<int32_t> members = hunks[hunk];
      if (members.size() == 1) continue;
      by_place.clear();
      by_place.reserve(members.size());
      for (const int32_t member : members)
        by_place.push_back({place_of(member), member});
      SortKeys(by_place);
      std::ranges::transform(by_place, members.begin(), &KeyedBy<int32_t>::entity);
    }
    by_place = {};
    std::vector<KeyedBy<HunkId>> hunks_by_place;
    hunks_by_place.reserve(hunks.num_hunks());
    for (const HunkId hunk : Ids<HunkId>(hunks.num_hunks()))
      hunks_by_place.push_back({place_of(hunks[hunk].front()), hunk});
    if (std::ranges::is_sorted(hunks_by_place)) return;
    SortKeys(hunks_by_place);
    std::vector<HunkId> order;
    order.reserve(hunks_by_place.size());
    for (const KeyedBy<HunkId>& keyed : hunks_by_place)
      order.push_back(keyed.entity);
    hunks.Permute(order);
  }

  const Matching& matching_;
  const HunkItems& items_;
  const GraphDiff& diff_;
};

Hunk HunkOf(const HunkItems& items, std::span<const int32_t> members) {
  Hunk hunk;
  for (const int32_t member : members) {
    const HunkItem& item = items[static_cast<size_t>(member)];
    if (item.pair.valid()) {
      hunk.pairs.push_back(item.pair);
    } else if (item.before.valid()) {
      hunk.deleted.push_back(item.before);
    } else {
      hunk.inserted.push_back(item.after);
    }
  }
  return hunk;
}

}  // namespace

void AllHunkFacts::SetPlace(HunkId hunk, size_t way, const HunkPlace& place) {
  uint32_t& index = facts_[hunk].places[way];
  if (place.path.empty() && place.layer.empty()) {
    index = 0;
    return;
  }
  // The other way often leads to the same place.
  if (places_.back() != place) places_.push_back(place);
  index = static_cast<uint32_t>(places_.size() - 1);
}

AllHunkFacts FindHunks(const Matching& matching, const Layers& layers, LabelledSides* spent,
                       GraphDiff& diff) {
  HunkItems items(matching, diff);
  if (items.empty()) return AllHunkFacts(0);
  const HunkPlaces places(matching, layers, diff);
  items.FindLayers(places);
  const HunkMembers hunks = HunkFinder(matching, items, diff).Run();
  AllHunkFacts facts = HunkKeys(matching, diff, items, places).Compute(hunks);
  items.ForgetIndices();
  if (spent != nullptr) {
    spent->before.ForgetHashes();
    spent->after.ForgetHashes();
  }
  diff.hunks.reserve(hunks.num_hunks());
  for (const HunkId hunk : facts.hunks())
    diff.hunks.Add(HunkOf(items, hunks[hunk]));
  return facts;
}

}  // namespace strata
