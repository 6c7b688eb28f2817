#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"
#include "diff/pattern/hunks.h"
#include "diff/pattern/layers.h"

namespace strata {

class HunkItems;

/// Where the items of hunks are: their modules, and layers.
class HunkPlaces {
 public:
  /// REQUIRES: all outlive this.
  HunkPlaces(const Matching& matching, const Layers& layers, const GraphDiff& diff);

  /// By producers (`way` 0), by consumers (1).
  HunkPlace PlaceOf(const HunkItem& item, size_t way) const;
  /// PlaceOf(item, 0).layer.
  std::string_view LayerOfItem(const HunkItem& item) const;
  /// The innermost module that holds all that a hunk's members did; layer and role are those of
  /// its beginning, `first`.
  HunkPlace CommonPlace(const HunkItems& items, std::span<const int32_t> members,
                        const HunkItem& first, size_t way) const;

 private:
  void FindAnchors();
  EntityId ParameterAt(EntityId after) const;
  EntityId AnchorAt(size_t way, EntityId after) const;
  std::string_view PathOfInserted(EntityId id) const;

  const Matching& matching_;
  const Layers& layers_;
  const GraphDiff& diff_;
  std::array<IdVector<EntityId, EntityId>, 2>
      anchors_;  // by after entity: a before entity; empty: none was inserted
};

}  // namespace strata
