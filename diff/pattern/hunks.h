#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"
#include "diff/pattern/layers.h"

namespace strata {

/// A node of a hunk: a pair that differs by itself, a deleted node, or an inserted one.
struct HunkItem {
  PairId pair;  ///< none: deleted or inserted
  EntityId before, after;
  /// It only reads other nodes of its hunk, or reads them no more: it says where a change was made,
  /// not what was done.
  bool consumer = false;
};

/// Where a change was made. Of inserted nodes without a module path there are two answers, by what
/// they read and by what reads them.
struct HunkPlace {
  std::string_view path;   ///< of the innermost module around it; "" when there is none
  std::string_view layer;  ///< `layers.7`
  uint64_t role = 0;       ///< equal for the same place in different layers
  friend bool operator==(const HunkPlace&, const HunkPlace&) = default;
};

/// What is needed to compare a hunk with others.
struct HunkFacts {
  uint64_t key = 0;                  ///< equal for hunks that do the same, wherever they are
  std::array<uint32_t, 2> places{};  ///< by producers, by consumers: indices, see AllHunkFacts
};

/// The facts of all hunks. Most hunks of a graph without layers are nowhere.
class AllHunkFacts {
 public:
  explicit AllHunkFacts(size_t num_hunks) : facts_(num_hunks), places_(1) {}

  IdRange<HunkId> hunks() const { return IdsOf(facts_); }
  HunkFacts& operator[](HunkId hunk) { return facts_[hunk]; }
  const HunkFacts& operator[](HunkId hunk) const { return facts_[hunk]; }
  /// `way`: 0 by producers, 1 by consumers.
  const HunkPlace& place(HunkId hunk, size_t way) const {
    return places_[facts_[hunk].places[way]];
  }
  void SetPlace(HunkId hunk, size_t way, const HunkPlace& place);

 private:
  IdVector<HunkId, HunkFacts> facts_;
  std::vector<HunkPlace> places_;  // the first is nowhere
};

/// Fills `diff.hunks`, and returns the facts of each.
///
/// A hunk joins inserted and deleted nodes that touch, members of a replace relation, nodes that
/// moved side by side, and the consumers that were rewired to or from them, inside one layer where
/// layers are known. Derived changes are in no hunk.
///
/// The key takes in operators, literals, fields with their values, and edges between the items
/// (Weisfeiler-Lehman, 3 rounds). It takes in no names, no places, no surroundings, not the
/// consumers, and of sizes only what changed about them.
///
/// `spent`: the labels of `matching`, whose hashes it frees as soon as nothing reads them any more;
/// null: others still read them.
AllHunkFacts FindHunks(const Matching& matching, const Layers& layers, LabelledSides* spent,
                       GraphDiff& diff);

}  // namespace strata
