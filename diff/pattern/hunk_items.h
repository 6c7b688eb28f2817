#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"
#include "diff/pattern/hunk_places.h"
#include "diff/pattern/hunks.h"

namespace strata {

/// What hunks are made of: the nodes of a diff that differ by themselves, numbered.
class HunkItems {
 public:
  HunkItems(const Matching& matching, const GraphDiff& diff);
  /// Call once, before `InOneLayer`.
  void FindLayers(const HunkPlaces& places);
  /// Frees all but the items.
  void ForgetIndices() {
    item_of_ = {};
    layer_of_item_ = std::vector<int32_t>();  // `{}` would keep the memory
  }

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const HunkItem& operator[](size_t item) const { return items_[item]; }

  /// None: the node does not differ by itself.
  std::optional<size_t> Find(Side side, EntityId id) const {
    const int32_t item = item_of_[side][id];
    return item < 0 ? std::nullopt : std::optional(static_cast<size_t>(item));
  }
  /// REQUIRES: there is one.
  size_t IndexOf(Side side, EntityId id) const { return static_cast<size_t>(item_of_[side][id]); }
  /// For prefetching.
  const void* AddressOf(Side side, EntityId id) const { return &item_of_[side][id]; }
  size_t IndexOf(const HunkItem& item) const {
    return item.before.valid() ? IndexOf(kBefore, item.before) : IndexOf(kAfter, item.after);
  }

  /// "": not known.
  std::string_view LayerOfItem(size_t item) const {
    return layer_of_item_.empty() ? "" : layers_[static_cast<size_t>(layer_of_item_[item])];
  }
  /// As far as is known.
  bool InOneLayer(size_t a, size_t b) const {
    if (layer_of_item_.empty()) return true;
    const int32_t x = layer_of_item_[a], y = layer_of_item_[b];
    return x == 0 || y == 0 || x == y;
  }

 private:
  void Add(HunkItem item);

  std::vector<HunkItem> items_;
  std::array<IdVector<EntityId, int32_t>, 2> item_of_;  // index into items_; -1: none
  std::vector<std::string_view> layers_{""};
  std::vector<int32_t> layer_of_item_;  // index into layers_; empty: none is known
};

/// The items of each hunk, in order of both graphs: indices into HunkItems.
class HunkMembers {
 public:
  /// `hunk_of_item` by item. REQUIRES: each of `num_hunks` hunks has an item.
  HunkMembers(const std::vector<HunkId>& hunk_of_item, size_t num_hunks);

  size_t num_hunks() const { return begin_.size() - 1; }
  std::span<int32_t> operator[](HunkId hunk) {
    return std::span(members_).subspan(Begin(hunk), Size(hunk));
  }
  std::span<const int32_t> operator[](HunkId hunk) const {
    return std::span(members_).subspan(Begin(hunk), Size(hunk));
  }
  /// Hunk `k` becomes the one that is `order[k]` now.
  void Permute(const std::vector<HunkId>& order);

 private:
  size_t Begin(HunkId hunk) const { return begin_[static_cast<size_t>(hunk.index)]; }
  size_t Size(HunkId hunk) const {
    return begin_[static_cast<size_t>(hunk.index) + 1] - Begin(hunk);
  }

  std::vector<uint32_t> begin_;  // of hunks, and the end
  std::vector<int32_t> members_;
};

/// A constant, or an input, of several nodes: what it is used for has nothing to do with each
/// other.
bool IsSharedConstant(const Matching& matching, Side side, EntityId id);

}  // namespace strata
