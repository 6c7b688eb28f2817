#include "diff/patterns.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/place.h"
#include "diff/union_find.h"
#include "ir/module.h"

namespace strata {
namespace {

/// What may be in a hunk: a pair that differs by itself, a deleted node, an inserted node. Numbered
/// through: pairs, then deleted, then inserted.
class HunkFinder {
 public:
  HunkFinder(const Matching& matching, GraphDiff& diff)
      : matching_(matching),
        diff_(diff),
        item_of_{std::vector<int32_t>(static_cast<size_t>(diff.before.size()), -1),
                 std::vector<int32_t>(static_cast<size_t>(diff.after.size()), -1)} {}

  void Run() {
    for (size_t i = 0; i < diff_.pairs.size(); ++i) {
      const Pair& pair = diff_.pairs[i];
      if (!pair.status.changed && !pair.status.moved) continue;
      const int32_t item = Add({static_cast<int32_t>(i), pair.before, pair.after});
      item_of_[kBefore][Index(pair.before)] = item;
      item_of_[kAfter][Index(pair.after)] = item;
    }
    for (EntityId id : diff_.deleted)
      item_of_[kBefore][Index(id)] = Add({-1, id, {}});
    for (EntityId id : diff_.inserted)
      item_of_[kAfter][Index(id)] = Add({-1, {}, id});
    UnionFind sets(items_.size());
    JoinEdges(kBefore, sets);
    JoinEdges(kAfter, sets);
    JoinRelations(sets);
    Collect(sets);
    GroupHunks();
  }

 private:
  struct Item {
    int32_t pair;
    EntityId before, after;
  };
  static size_t Index(EntityId id) { return static_cast<size_t>(id.index); }

  int32_t Add(Item item) {
    items_.push_back(item);
    return static_cast<int32_t>(items_.size()) - 1;
  }

  /// An edge joins if what it leads from is inserted or deleted. Its users are then rewired. The
  /// output would join everything.
  void JoinEdges(Side side, UnionFind& sets) {
    for (size_t item = 0; item < items_.size(); ++item) {
      const EntityId id = side == kBefore ? items_[item].before : items_[item].after;
      if (!id.valid() || matching_.labels(side).kind[Index(id)] == EntityKind::kOutput) continue;
      for (const Labels::Edge& operand : matching_.labels(side).operands(id.index)) {
        if (matching_.matched(side, operand.entity)) continue;
        sets.Join(item, static_cast<size_t>(item_of_[side][static_cast<size_t>(operand.entity)]));
      }
    }
  }

  void JoinRelations(UnionFind& sets) {
    for (const Relation& relation : diff_.relations) {
      int32_t first = -1;
      const auto join = [&](Side side, const std::vector<EntityId>& members) {
        for (EntityId id : members) {
          const int32_t item = item_of_[side][Index(id)];
          // The original of a copy stays what it is.
          if (item < 0 || items_[static_cast<size_t>(item)].pair >= 0) continue;
          if (first < 0) first = item;
          sets.Join(static_cast<size_t>(first), static_cast<size_t>(item));
        }
      };
      join(kBefore, relation.before);
      join(kAfter, relation.after);
    }
  }

  void Collect(UnionFind& sets) {
    std::map<size_t, std::vector<Item>> by_root;
    for (size_t item = 0; item < items_.size(); ++item)
      by_root[sets.Find(item)].push_back(items_[item]);
    for (auto& [root, items] : by_root)
      members_.push_back(std::move(items));
    SortByPlace();
    for (const std::vector<Item>& items : members_) {
      Hunk& hunk = diff_.hunks.emplace_back();
      for (const Item& item : items) {
        if (item.pair >= 0) {
          hunk.pairs.push_back(item.pair);
        } else if (item.before.valid()) {
          hunk.deleted.push_back(item.before);
        } else {
          hunk.inserted.push_back(item.after);
        }
      }
    }
  }

  /// By the first node in before order; an inserted node stands behind the last pair before it.
  void SortByPlace() {
    std::vector<int32_t> before_of_after(static_cast<size_t>(diff_.after.size()));
    int32_t last = -1;
    for (size_t i = 0; i < before_of_after.size(); ++i) {
      const int32_t pair = diff_.pair_of_after[i];
      if (pair >= 0) last = diff_.pairs[static_cast<size_t>(pair)].before.index;
      before_of_after[i] = last;
    }
    const auto place_of = [&](const std::vector<Item>& items) {
      std::pair<int32_t, int32_t> first{INT32_MAX, 0};
      for (const Item& item : items) {
        const std::pair<int32_t, int32_t> place =
            item.before.valid() ? std::pair(item.before.index, -1)
                                : std::pair(before_of_after[Index(item.after)], item.after.index);
        first = std::min(first, place);
      }
      return first;
    };
    std::ranges::stable_sort(members_, {}, place_of);
  }

  std::string_view ModuleOf(const Item& item) const {
    const Listing& listing = item.before.valid() ? diff_.before : diff_.after;
    const EntityId id = item.before.valid() ? item.before : item.after;
    const Graph& graph = listing.graph(id);
    return graph.module().str(graph.node(listing[id].node).module);
  }

  /// What an item is, without where it is: equal in all instances of a pattern.
  uint64_t Signature(const Item& item) const {
    uint64_t hash = 0;
    if (item.before.valid()) {
      hash = Mix(hash, matching_.labels(kBefore).op[Index(item.before)]);
    }
    if (item.after.valid()) {
      hash = Mix(hash, matching_.labels(kAfter).op[Index(item.after)] + 1);
    }
    if (item.pair < 0) return hash;
    const Pair& pair = diff_.pairs[static_cast<size_t>(item.pair)];
    hash = Mix(hash, (pair.status.changed ? 1u : 0u) + (pair.status.moved ? 2u : 0u));
    for (const FieldDiff& field : pair.fields) {
      hash = Mix(hash, HashText(field.path));
      // Names of operands differ from place to place.
      if (field.path.starts_with("operands") || field.path.starts_with("meta.")) continue;
      hash = Mix(hash, HashText(field.before.value_or("")));
      hash = Mix(hash, HashText(field.after.value_or("")));
    }
    return hash;
  }

  /// Signatures with those of the neighbours inside the hunk, summed up.
  uint64_t Key(const std::vector<Item>& items) const {
    uint64_t key = 0;
    for (const Item& item : items) {
      uint64_t hash = Signature(item);
      for (Side side : {kBefore, kAfter}) {
        const EntityId id = side == kBefore ? item.before : item.after;
        if (!id.valid()) continue;
        for (const Labels::Edge& operand : matching_.labels(side).operands(id.index)) {
          const int32_t other = item_of_[side][static_cast<size_t>(operand.entity)];
          if (other < 0 || matching_.matched(side, operand.entity)) continue;
          const uint64_t neighbour = Signature(items_[static_cast<size_t>(other)]);
          hash = Mix(hash, Mix(neighbour, static_cast<uint64_t>(operand.slot) * 2 + side));
        }
      }
      key += Spread(hash);
    }
    return key;
  }

  void GroupHunks() {
    std::map<uint64_t, std::vector<int32_t>> by_key;
    for (size_t i = 0; i < diff_.hunks.size(); ++i)
      by_key[Key(members_[i])].push_back(static_cast<int32_t>(i));
    for (auto& [key, hunks] : by_key) {
      if (hunks.size() < 2) continue;
      Pattern pattern;
      pattern.title = Title(members_[static_cast<size_t>(hunks[0])]);
      std::vector<std::string> places;
      for (int32_t hunk : hunks) {
        const std::vector<Item>& items = members_[static_cast<size_t>(hunk)];
        pattern.nodes += static_cast<int32_t>(items.size());
        std::string place = CommonPlace(items);
        if (!place.empty()) places.push_back(std::move(place));
      }
      PlaceRange range = GeneralizePlaces(places);
      pattern.where = std::move(range.where);
      pattern.except = std::move(range.except);
      pattern.hunks = std::move(hunks);
      diff_.patterns.push_back(std::move(pattern));
    }
    std::ranges::sort(diff_.patterns, [](const Pattern& a, const Pattern& b) {
      return a.nodes != b.nodes ? a.nodes > b.nodes : a.hunks[0] < b.hunks[0];
    });
    for (size_t i = 0; i < diff_.patterns.size(); ++i) {
      for (int32_t hunk : diff_.patterns[i].hunks)
        diff_.hunks[static_cast<size_t>(hunk)].pattern = static_cast<int32_t>(i);
    }
  }

  /// The innermost module that holds all items whose module is known.
  std::string CommonPlace(const std::vector<Item>& items) const {
    std::optional<std::string_view> common;
    for (const Item& item : items) {
      const std::string_view module = ModuleOf(item);
      if (module.empty()) continue;
      common = common ? CommonModule(*common, module) : module;
    }
    return std::string(common.value_or(""));
  }

  std::string Title(const std::vector<Item>& items) const {
    std::vector<std::string> inserted, deleted, changed;
    const auto add = [](std::vector<std::string>& list, std::string text) {
      if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
    };
    for (const Item& item : items) {
      if (item.pair < 0 && item.before.valid()) {
        add(deleted, TargetOf(diff_.before, item.before));
      } else if (item.pair < 0) {
        add(inserted, TargetOf(diff_.after, item.after));
      }
    }
    if (!inserted.empty() && !deleted.empty()) {
      return fmt::format("replace {} by {}", Few(deleted), Few(inserted));
    }
    if (!inserted.empty()) return fmt::format("insert {}", Few(inserted));
    if (!deleted.empty()) return fmt::format("delete {}", Few(deleted));
    for (const Item& item : items) {
      const Pair& pair = diff_.pairs[static_cast<size_t>(item.pair)];
      for (const FieldDiff& field : pair.fields) {
        if (field.path.starts_with("meta.") || field.derived) continue;
        if (field.path == "target")
          return fmt::format("change {} to {}", *field.before, *field.after);
        add(changed, fmt::format("{} of {}", field.path, TargetOf(diff_.before, pair.before)));
      }
      if (changed.empty())
        add(changed, fmt::format("place of {}", TargetOf(diff_.before, pair.before)));
    }
    return fmt::format("change {}", Few(changed));
  }

  static std::string TargetOf(const Listing& listing, EntityId id) {
    const std::string_view target = listing.target(id);
    if (!target.empty()) return std::string(target);
    return listing[id].kind == EntityKind::kInput ? "input" : "output";
  }

  static std::string Few(const std::vector<std::string>& list) {
    constexpr size_t kShown = 3;
    const auto shown = std::span(list).first(std::min(list.size(), kShown));
    std::string text = fmt::format("{}", fmt::join(shown, ", "));
    if (list.size() > kShown) text += fmt::format(" and {} more", list.size() - kShown);
    return text;
  }

  const Matching& matching_;
  GraphDiff& diff_;
  std::array<std::vector<int32_t>, 2> item_of_;
  std::vector<Item> items_;
  std::vector<std::vector<Item>> members_;  // per hunk
};

}  // namespace

void FindPatterns(const Matching& matching, GraphDiff& diff) {
  HunkFinder(matching, diff).Run();
}

}  // namespace strata
