#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "diff/graph/keyed.h"
#include "diff/graph/large_arrays.h"
#include "diff/match/matching.h"

// Hashes of what is around a node. Matched nodes count as the pair that they are in, all others by
// their label, so that equal hashes on both sides mean equal surroundings. Vectors are indexed from
// the scope's first entity.
namespace strata {

/// Of everything a node is computed from. Unmatched inputs and constants are unlike all nodes of
/// the other side if `strict`, else they count by their label.
std::vector<uint64_t> UpCones(const Matching& matching, Side side, const ScopePair& scope,
                              bool strict);

/// Of everything that is computed from a node.
std::vector<uint64_t> DownCones(const Matching& matching, Side side, const ScopePair& scope);

/// Of what is computed from a node in at most `depth` steps. Nodes with more than
/// Matching::kMaxEdges users do not look at these.
std::vector<uint64_t> UseHashes(const Matching& matching, Side side, const ScopePair& scope,
                                int depth);

/// The nodes of a side that have no partner, ascending.
std::vector<EntityId> NotMatched(const Matching& matching, Side side, const ScopePair& scope);

/// Of everything at most a radius of edges away, step by step to a larger one; at first of the
/// nodes alone. Nodes with more than Matching::kMaxEdges operands (users) do not look at their
/// operands (users): one change among them would make them unlike.
class GrowingRadius {
 public:
  GrowingRadius(const Matching& matching, Side side, const ScopePair& scope, LabelKind labels);

  /// One step for `nodes`; all others stay as they are.
  void Grow(std::span<const EntityId> nodes);
  uint64_t hash(EntityId i) const { return hashes_[scope_.PlaceOf(side_, i)]; }

 private:
  const Matching& matching_;
  const Side side_;
  const ScopePair& scope_;
  const LabelKind label_;
  std::vector<uint64_t> hashes_;
};

/// Hashes of several radii of the nodes that may have an equal on the other side.
class CommonHashes {
 public:
  /// The same as GrowingRadius for both sides and all radii from `min_radius` to `max_radius`, of
  /// nodes that are not matched. Costs little where the sides have little in common: a node without
  /// an equal is followed no further.
  CommonHashes(const Matching& matching, const ScopePair& scope, LabelKind labels, int min_radius,
               int max_radius);

  /// Those of a radius for which `is_wanted(node)`, in order. Call once: they are not kept.
  template <class Fn>
  std::vector<Keyed> Take(int radius, Side side, Fn&& is_wanted) {
    const std::vector<uint64_t> hashes =
        std::move(hashes_[static_cast<size_t>(radius - min_radius_)][side]);
    std::vector<Keyed> keys;
    ReserveLarge(keys, hashes.size());
    size_t next = 0;
    const Followed& followed = followed_[side];
    for (size_t k = 0; k < followed.nodes.size(); ++k) {
      if (followed.radii[k] < radius) continue;
      const uint64_t hash = hashes[next++];
      if (is_wanted(followed.nodes[k])) keys.push_back({hash, followed.nodes[k]});
    }
    return keys;
  }

 private:
  /// Nodes, ascending, and of each the largest radius up to which it was followed.
  struct Followed {
    std::vector<EntityId> nodes;
    std::vector<uint8_t> radii;
  };
  /// Notes that `nodes`, some of `followed` unless this is empty, are followed up to `radius`.
  static void Follow(const std::vector<EntityId>& nodes, int radius, Followed& followed);

  int min_radius_;
  std::array<Followed, 2> followed_;
  std::vector<std::array<std::vector<uint64_t>, 2>>
      hashes_;  // by radius: of the nodes followed up to it
};

}  // namespace strata
