#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "diff/match/matching.h"

namespace strata {

/// Unmatched computations of one side of a scope that hang together, known by what is around them:
/// the matched nodes that they read, and those that read them. Follows the matching: what no new
/// pair touched is not looked at again.
///
/// REQUIRES: no pair is removed during its lifetime.
class Regions {
 public:
  /// Regions of more nodes are not kept, since they are not compared.
  static constexpr size_t kMostNodes = 90;

  /// REQUIRES: all arguments outlive it.
  Regions(const Matching& matching, const ScopePair& scope, Side side);

  /// Takes in the pairs that were made since the last call, at first all. Appends what is around
  /// regions that have come or gone.
  void Update(std::vector<uint64_t>& changed);

  /// The nodes of the one region with that around it, in order. Empty: there is none, or there are
  /// several.
  std::span<const EntityId> Only(uint64_t around) const;

 private:
  struct Region {
    uint64_t around = 0;          ///< 0: nothing, or not kept
    uint32_t begin = 0, end = 0;  ///< in members_; a graph may have a region per node
  };
  /// Regions that have the same around them.
  struct Alike {
    int32_t count = 0;
    size_t sum_of_regions = 0;  ///< so the region, where it is one
  };

  // Instead of an index into regions_.
  static constexpr int32_t kNotYet = -1, kNever = -2;

  int32_t& RegionOf(EntityId i) {
    return region_of_[static_cast<size_t>(i.index - ids_.begin_id().index)];
  }
  std::vector<EntityId> TakeInNewPairs(std::vector<uint64_t>& changed);
  void Drop(int32_t region, std::vector<uint64_t>& changed);
  void Grow(EntityId seed, int32_t first_new);
  uint64_t Around(std::span<const EntityId> nodes);

  const Matching& matching_;
  const Labels& labels_;
  const Side side_;
  const IdRange<EntityId> ids_;
  std::vector<int32_t> region_of_;  // by place in the scope
  std::vector<Region> regions_;     // those that are gone too
  std::vector<EntityId> members_;
  std::vector<uint64_t> tokens_;    // of Around
  FlatMap<uint64_t, Alike> alike_;  // by what is around them
  size_t taken_in_ = 0;             // of matching_.made()
};

}  // namespace strata
