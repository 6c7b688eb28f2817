#pragma once
#include <array>
#include <cstdint>
#include <optional>
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
  size_t IndexOf(const HunkItem& item) const {
    return item.before.valid() ? IndexOf(kBefore, item.before) : IndexOf(kAfter, item.after);
  }

  std::string_view LayerOfItem(size_t item) const { return layer_of_item_[item]; }
  /// As far as is known.
  bool InOneLayer(size_t a, size_t b) const {
    const std::string_view x = LayerOfItem(a), y = LayerOfItem(b);
    return x.empty() || y.empty() || x == y;
  }

 private:
  void Add(HunkItem item);

  std::vector<HunkItem> items_;
  std::array<IdVector<EntityId, int32_t>, 2> item_of_;  // index into items_; -1: none
  std::vector<std::string_view> layer_of_item_;
};

/// A constant, or an input, of several nodes: what it is used for has nothing to do with each
/// other.
bool IsSharedConstant(const Matching& matching, Side side, EntityId id);

}  // namespace strata
