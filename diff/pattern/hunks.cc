#include "diff/pattern/hunks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "diff/graph/arguments.h"
#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/module_path.h"
#include "diff/graph/union_find.h"
#include "ir/module.h"

namespace strata {
namespace {

/// The text with numbers inside of quotes hidden: 'layers.3.attn' names a place.
std::string WithoutPlaces(std::string_view text) {
  std::string result;
  bool quoted = false;
  for (char c : text) {
    if (c == '\'' || c == '"') quoted = !quoted;
    if (!quoted || !IsDigit(c)) {
      result += c;
    } else if (result.back() != '*') {
      result += '*';
    }
  }
  return result;
}

std::vector<std::string_view> SizesOf(std::string_view text) {
  std::vector<std::string_view> sizes;
  for (size_t i = 1; i < text.size();) {
    const size_t end = std::min(text.find_first_of(",]", i), text.size());
    sizes.push_back(TrimBlanks(text.substr(i, end - i)));
    i = end + 1;
  }
  return sizes;
}

/// What changed of a list of sizes: of `[4, 128, 64]` and `[4, 256, 64]` only 128 and 256.
uint64_t HashOfSizes(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = SizesOf(before), b = SizesOf(after);
  if (a.size() != b.size()) return Mix(HashText(before), HashText(after));
  std::set<std::pair<std::string_view, std::string_view>> changes;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) changes.emplace(a[i], b[i]);
  }
  uint64_t hash = 1;
  for (const auto& [x, y] : changes)
    hash = Mix(hash, Mix(HashText(x), HashText(y)));
  return hash;
}

class HunkFinder {
 public:
  HunkFinder(const Matching& matching, const Layers& layers, GraphDiff& diff)
      : matching_(matching),
        layers_(layers),
        diff_(diff),
        item_of_{IdVector<EntityId, int32_t>(diff.before.ids().size(), -1),
                 IdVector<EntityId, int32_t>(diff.after.ids().size(), -1)} {}

  IdVector<HunkId, HunkFacts> Run() {
    AddItems();
    if (items_.empty()) return {};
    FindAnchors();
    FindLayers();
    UnionFind sets(items_.size());
    JoinEdges(sets);
    JoinConsumers(sets);
    JoinReplacements(sets);
    JoinMoves(sets);
    Collect(sets);
    ComputeKeys();
    return std::move(facts_);
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  void AddItems() {
    for (PairId id : IdsOf(diff_.pairs)) {
      const Pair& pair = diff_.pairs[id];
      if (!pair.status.changed && !pair.status.moved) continue;
      Add({id, pair.before, pair.after, IsConsumer(pair)});
    }
    for (EntityId id : diff_.deleted)
      Add({{}, id, {}, false});
    for (EntityId id : diff_.inserted)
      Add({{}, {}, id, false});
  }

  void Add(HunkItem item) {
    const auto index = static_cast<int32_t>(items_.size());
    if (item.before.valid()) item_of_[kBefore][item.before] = index;
    if (item.after.valid()) item_of_[kAfter][item.after] = index;
    items_.push_back(item);
  }

  /// Its own fields are operands that were or are unmatched nodes. The output reads from anywhere.
  bool IsConsumer(const Pair& pair) const {
    if (!pair.status.changed) return false;
    const bool is_output = matching_.labels(kBefore).kind[pair.before] == EntityKind::kOutput;
    for (const FieldDiff& field : pair.fields) {
      if (field.derived || field.path.starts_with("meta.")) continue;
      if (!field.path.starts_with("operands")) return false;
    }
    return is_output || ReadsUnmatched(kBefore, pair.before) || ReadsUnmatched(kAfter, pair.after);
  }

  bool ReadsUnmatched(Side side, EntityId id) const {
    return std::ranges::any_of(
        matching_.labels(side).operands(id),
        [&](const Labels::Edge& operand) { return !matching_.matched(side, operand.entity); });
  }

  /// For each inserted node a node of the before graph near it: up the edges, and down.
  void FindAnchors() {
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
  EntityId ParameterAt(EntityId after) const {
    if (!matching_.matched(kAfter, after)) return {};
    const EntityId before = matching_.partner(kAfter, after);
    return layers_.is_parameter(before) ? before : EntityId{};
  }
  EntityId AnchorAt(size_t way, EntityId after) const {
    if (!matching_.matched(kAfter, after)) return anchors_[way][after];
    const EntityId before = matching_.partner(kAfter, after);
    return matching_.labels(kBefore).kind[before] == EntityKind::kCompute ? before : EntityId{};
  }

  HunkPlace PlaceOf(const HunkItem& item, size_t way) const {
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

  std::string_view PathOfInserted(EntityId id) const {
    if (layers_.by_structure()) return {};
    const Graph& graph = diff_.after.graph(id);
    return graph.module().str(graph.node(diff_.after[id].node).module);
  }

  /// PlaceOf(item, 0).layer of each item, for the edges between them.
  void FindLayers() {
    layer_of_item_.reserve(items_.size());
    for (const HunkItem& item : items_) {
      const std::string_view path =
          item.before.valid() ? std::string_view() : PathOfInserted(item.after);
      layer_of_item_.push_back(path.empty() ? PlaceOf(item, 0).layer : LayerOf(path));
    }
  }
  std::string_view LayerOfItem(size_t item) const { return layer_of_item_[item]; }
  bool InOneLayer(size_t a, size_t b) const {
    const std::string_view x = LayerOfItem(a), y = LayerOfItem(b);
    return x.empty() || y.empty() || x == y;
  }

  /// Inserted nodes that touch, deleted nodes that touch.
  void JoinEdges(UnionFind& sets) {
    for (Side side : {kBefore, kAfter}) {
      for (size_t item = 0; item < items_.size(); ++item) {
        const EntityId id = side == kBefore ? items_[item].before : items_[item].after;
        if (!id.valid() || items_[item].pair.valid()) continue;
        for (const Labels::Edge& operand : matching_.labels(side).operands(id)) {
          if (matching_.matched(side, operand.entity) || IsShared(side, operand.entity)) continue;
          const size_t other = Index(item_of_[side][operand.entity]);
          if (InOneLayer(item, other)) sets.Join(item, other);
        }
      }
    }
  }

  /// A constant of several nodes: what it is used for has nothing to do with each other.
  bool IsShared(Side side, EntityId i) const {
    const Labels& labels = matching_.labels(side);
    const bool is_input =
        labels.kind[i] == EntityKind::kInput || labels.kind[i] == EntityKind::kConstant;
    return is_input && labels.users(i).size() > 1;
  }

  /// A consumer joins what it reads and what it read of one layer; the output would join
  /// everything.
  void JoinConsumers(UnionFind& sets) {
    for (size_t item = 0; item < items_.size(); ++item) {
      const HunkItem& consumer = items_[item];
      if (!consumer.pair.valid()) continue;
      if (matching_.labels(kBefore).kind[consumer.before] == EntityKind::kOutput) continue;
      std::optional<size_t> first;
      for (Side side : {kBefore, kAfter}) {
        const EntityId id = side == kBefore ? consumer.before : consumer.after;
        for (const Labels::Edge& operand : matching_.labels(side).operands(id)) {
          if (matching_.matched(side, operand.entity) || IsShared(side, operand.entity)) continue;
          const size_t other = Index(item_of_[side][operand.entity]);
          if (!first) first = other;
          if (InOneLayer(*first, other)) sets.Join(item, other);
        }
      }
    }
  }

  /// All of a replaced region; one that spans layers falls apart into the layers in which both
  /// sides are, and what is elsewhere goes with the first of them.
  void JoinReplacements(UnionFind& sets) {
    for (const Relation& relation : diff_.relations) {
      if (relation.kind == RelationKind::kClone || relation.kind == RelationKind::kMerge) continue;
      std::map<std::string_view, std::array<int32_t, 2>> first_in_layer;
      const auto for_each = [&](auto&& fn) {
        for (EntityId id : relation.before)
          fn(kBefore, item_of_[kBefore][id]);
        for (EntityId id : relation.after)
          fn(kAfter, item_of_[kAfter][id]);
      };
      for_each([&](Side side, int32_t item) {
        auto [place, is_new] =
            first_in_layer.try_emplace(LayerOfItem(Index(item)), std::array<int32_t, 2>{-1, -1});
        if (place->second[side] < 0) place->second[side] = item;
      });
      int32_t first = item_of_[kBefore][relation.before[0]];
      for (const auto& [layer, items] : first_in_layer) {
        if (layer.empty() || std::ranges::min(items) < 0) continue;
        first = items[kBefore];
        break;
      }
      for_each([&](Side, int32_t item) {
        const std::array<int32_t, 2>& own = first_in_layer.at(LayerOfItem(Index(item)));
        sets.Join(Index(std::ranges::min(own) >= 0 ? own[kBefore] : first), Index(item));
      });
    }
  }

  /// Nodes that only moved, and are neighbours in both orders.
  void JoinMoves(UnionFind& sets) {
    for (size_t item = 0; item < items_.size(); ++item) {
      const HunkItem& moved = items_[item];
      if (!OnlyMoved(moved) || moved.before.index == 0 || moved.after.index == 0) continue;
      const int32_t other = item_of_[kBefore][EntityId{moved.before.index - 1}];
      if (other < 0 || other != item_of_[kAfter][EntityId{moved.after.index - 1}]) continue;
      if (OnlyMoved(items_[Index(other)]) && InOneLayer(item, Index(other)))
        sets.Join(item, Index(other));
    }
  }
  bool OnlyMoved(const HunkItem& item) const {
    return item.pair.valid() && !diff_.pairs[item.pair].status.changed;
  }

  void Collect(UnionFind& sets) {
    // The root of a set is its first item.
    std::vector<HunkId> hunk_of_root(items_.size());
    for (size_t item = 0; item < items_.size(); ++item) {
      const size_t root = sets.Find(item);
      if (root == item) hunk_of_root[root] = facts_.Add({});
      facts_[hunk_of_root[root]].items.push_back(items_[item]);
    }
    SortByPlace();
    for (HunkFacts& facts : facts_) {
      Hunk& hunk = diff_.hunks[diff_.hunks.Add({})];
      for (const HunkItem& item : facts.items) {
        if (item.pair.valid()) {
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
    IdVector<EntityId, EntityId> before_of_after(diff_.pair_of_after.size());
    EntityId last;
    for (EntityId id : IdsOf(before_of_after)) {
      const PairId pair = diff_.pair_of_after[id];
      if (pair.valid()) last = diff_.pairs[pair].before;
      before_of_after[id] = last;
    }
    const auto place_of = [&](const HunkItem& item) {
      return item.before.valid() ? std::pair(item.before.index, -1)
                                 : std::pair(before_of_after[item.after].index, item.after.index);
    };
    // Places are looked up once: the largest hunk may be nearly everything.
    std::vector<KeyedBy<int32_t>> places;
    std::vector<HunkItem> sorted;
    for (HunkFacts& facts : facts_) {
      places.clear();
      for (const HunkItem& item : facts.items) {
        const auto [before, after] = place_of(item);
        places.push_back(
            {static_cast<uint64_t>(before + 1) << 32 | static_cast<uint32_t>(after + 1),
             static_cast<int32_t>(places.size())});
      }
      if (std::ranges::is_sorted(places)) continue;
      SortKeys(places);
      sorted.clear();
      for (const KeyedBy<int32_t>& place : places)
        sorted.push_back(facts.items[Index(place.entity)]);
      facts.items = sorted;
    }
    std::ranges::stable_sort(facts_, {},
                             [&](const HunkFacts& facts) { return place_of(facts.items.front()); });
  }

  void ComputeKeys() {
    hashes_.resize(items_.size());
    std::vector<uint64_t> next(items_.size());
    // Of a consumer whose cause lies in another layer nothing else is left.
    const auto counts_all = [](const HunkFacts& facts) {
      return std::ranges::all_of(facts.items, [](const HunkItem& item) { return item.consumer; });
    };
    const auto counts = [](const HunkItem& item, bool all) { return all || !item.consumer; };
    std::unordered_map<std::ptrdiff_t, int> hunks_of_size;
    const auto size_of = [&](const HunkFacts& facts, bool all) {
      return std::ranges::count_if(facts.items,
                                   [&](const HunkItem& item) { return counts(item, all); });
    };
    for (const HunkFacts& facts : facts_)
      ++hunks_of_size[size_of(facts, counts_all(facts))];
    for (HunkFacts& facts : facts_) {
      const bool all = counts_all(facts);
      const auto first = std::ranges::find_if(
          facts.items, [&](const HunkItem& item) { return counts(item, all); });
      for (size_t way : {size_t{0}, size_t{1}})
        facts.places[way] = CommonPlace(facts, *first, way);
      // What is like no other in size needs no closer look: that would be long for the largest.
      const std::ptrdiff_t size = size_of(facts, all);
      if (hunks_of_size[size] == 1) {
        facts.key = Spread(static_cast<uint64_t>(size));
        continue;
      }
      std::vector<size_t> members;
      for (const HunkItem& item : facts.items) {
        if (!counts(item, all)) continue;
        members.push_back(Index(ItemOf(item)));
        hashes_[members.back()] = Signature(item);
      }
      constexpr int kRounds = 3;
      for (int round = 0; round < kRounds && members.size() > 1; ++round) {
        for (size_t member : members)
          next[member] = Widened(member, all);
        for (size_t member : members)
          hashes_[member] = next[member];
      }
      for (size_t member : members)
        facts.key += Spread(hashes_[member]);
    }
  }

  int32_t ItemOf(const HunkItem& item) const {
    return item.before.valid() ? item_of_[kBefore][item.before] : item_of_[kAfter][item.after];
  }

  /// The hash of a field's text. An argument that is a node on this side has a name of its place.
  uint64_t HashOfText(Side side, std::string_view path, std::string_view text) {
    const bool is_argument = path.starts_with("args[") || path.starts_with("kwargs.");
    return is_argument && IsName(side, text) ? 1 : HashText(WithoutPlaces(text));
  }

  bool IsName(Side side, std::string_view text) {
    const bool is_word = !text.empty() && IsWordChar(text[0]) && !IsDigit(text[0]);
    if (!is_word) return false;
    const Listing& listing = side == kBefore ? diff_.before : diff_.after;
    if (names_[side].empty()) {
      for (EntityId id : listing.ids())
        names_[side].insert(listing.name(id));
    }
    return names_[side].contains(std::string(text));
  }

  /// What an item is, without where it is.
  uint64_t Signature(const HunkItem& item) {
    if (!item.pair.valid()) {
      const Side side = item.before.valid() ? kBefore : kAfter;
      const EntityId id = side == kBefore ? item.before : item.after;
      return Mix(SignatureOfNode(side, id), side + 1);
    }
    const Pair& pair = diff_.pairs[item.pair];
    uint64_t hash = matching_.labels(kBefore).op[pair.before];
    if (!pair.status.changed) return Mix(hash, 3);
    for (const FieldDiff& field : pair.fields) {
      if (field.derived || field.path.starts_with("meta.")) continue;
      hash = Mix(hash, HashText(field.path));
      // Names of operands differ from place to place.
      if (field.path.starts_with("operands") || field.path == "alias") continue;
      const std::string_view before = field.before ? std::string_view(*field.before) : "";
      const std::string_view after = field.after ? std::string_view(*field.after) : "";
      if (field.path == "shape" || field.path == "strides") {
        hash = Mix(hash, HashOfSizes(before, after));
      } else if (field.path == "module") {
        hash = Mix(hash, Mix(HashText(ModulePathShape(before)), HashText(ModulePathShape(after))));
      } else {
        hash = Mix(hash, HashOfText(kBefore, field.path, before));
        hash = Mix(hash, HashOfText(kAfter, field.path, after));
      }
    }
    return hash;
  }

  /// The operator, its literals, and which operands are the same value.
  uint64_t SignatureOfNode(Side side, EntityId id) const {
    const Listing& listing = side == kBefore ? diff_.before : diff_.after;
    uint64_t hash = matching_.labels(side).op[id];
    std::vector<EntityId> operands;
    for (const Leaf& leaf : LeavesOf(listing, id)) {
      hash = Mix(hash, HashText(leaf.path));
      if (!leaf.operand.valid()) {
        hash = Mix(hash, HashText(WithoutPlaces(leaf.skeleton)));
        continue;
      }
      const auto known = std::ranges::find(operands, leaf.operand);
      hash = Mix(hash, static_cast<uint64_t>(known - operands.begin()));
      if (known == operands.end()) operands.push_back(leaf.operand);
    }
    return hash;
  }

  /// The hash with those of the inserted or deleted nodes next to it.
  uint64_t Widened(size_t member, bool consumers) const {
    const HunkItem& item = items_[member];
    uint64_t hash = hashes_[member];
    for (Side side : {kBefore, kAfter}) {
      const EntityId id = side == kBefore ? item.before : item.after;
      if (!id.valid()) continue;
      const auto neighbour = [&](const Labels::Edge& edge) -> uint64_t {
        if (matching_.matched(side, edge.entity) || IsShared(side, edge.entity)) return 0;
        const auto other = static_cast<size_t>(item_of_[side][edge.entity]);
        if (items_[other].consumer && !consumers) return 0;
        return InOneLayer(member, other) ? Mix(hashes_[other], Index(edge.slot)) : 0;
      };
      for (const Labels::Edge& operand : matching_.labels(side).operands(id))
        hash = Mix(hash, neighbour(operand) + side);
      uint64_t users = 0;
      if (matching_.labels(side).users(id).size() <= Matching::kMaxEdges) {
        for (const Labels::Edge& user : matching_.labels(side).users(id))
          users += neighbour(user);
      }
      hash = Mix(hash, users);
    }
    return hash;
  }

  /// The innermost module that holds all that was done; layer and role are those of its beginning.
  HunkPlace CommonPlace(const HunkFacts& facts, const HunkItem& first, size_t way) const {
    HunkPlace place = PlaceOf(first, way);
    bool known = !place.path.empty();
    for (const HunkItem& item : facts.items) {
      if (item.consumer && !first.consumer) continue;
      const std::string_view path = PlaceOf(item, way).path;
      if (path.empty()) continue;
      place.path = known ? CommonModule(place.path, path) : path;
      known = true;
    }
    return place;
  }

  const Matching& matching_;
  const Layers& layers_;
  GraphDiff& diff_;
  std::array<IdVector<EntityId, int32_t>, 2> item_of_;   // index into items_; -1: none
  std::array<IdVector<EntityId, EntityId>, 2> anchors_;  // by after entity: a before entity
  std::vector<HunkItem> items_;
  std::vector<std::string_view> layer_of_item_;
  std::vector<uint64_t> hashes_;                          // by item
  std::array<std::unordered_set<std::string>, 2> names_;  // empty: not needed so far
  IdVector<HunkId, HunkFacts> facts_;
};

}  // namespace

IdVector<HunkId, HunkFacts> FindHunks(const Matching& matching, const Layers& layers,
                                      GraphDiff& diff) {
  return HunkFinder(matching, layers, diff).Run();
}

}  // namespace strata
