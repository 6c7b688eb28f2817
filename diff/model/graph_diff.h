#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/slim_vector.h"
#include "diff/graph/listing.h"
#include "diff/model/field_diffs.h"

namespace strata {

/// What is said of a pair: nothing ("same"), or several of these.
struct PairStatus {
  bool renamed = false;
  bool moved = false;    ///< its place in the order changed beyond what insertions explain
  bool changed = false;  ///< a field of its own differs
  bool derived = false;  ///< fields differ, all of them as consequences of other changes

  bool same() const { return !renamed && !moved && !changed && !derived; }
  /// What a reader of graphs would call a difference: anything but a new name.
  bool differs() const { return moved || changed || derived; }
  friend bool operator==(const PairStatus&, const PairStatus&) = default;
};
/// "same", "renamed", "moved+changed", …
std::string ToString(PairStatus status);

/// How a pair was found, strongest evidence first.
enum class Via : uint8_t {
  kPin,     ///< given by the caller
  kId,      ///< the same StableId in one trace
  kInput,   ///< inputs and constants by place, type and users
  kCone,    ///< the whole computation above (and below) is the same
  kRadius,  ///< the neighbourhood is the same and unique
  kLocal,   ///< next to matched nodes
  kOrder,   ///< between matched nodes in program order
};
std::string_view ToString(Via via);

/// Indices into the vectors of one GraphDiff.
using PairId = Id<struct PairTag>;
using HunkId = Id<struct HunkTag>;
using PatternId = Id<struct PatternTag>;

/// A claim of identity: this node is that node.
struct Pair {
  EntityId before, after;
  PairStatus status;
  Via via = Via::kLocal;
  double confidence = 1;  ///< probability that the claim is right
  FieldDiffs fields;
};

enum class RelationKind : uint8_t {
  kReplace,        ///< deleted nodes by inserted ones
  kClone,          ///< before: the original; after: its partner, then the inserted copies
  kMerge,          ///< before: the partner's original, then the deleted equals; after: one
  kBecameInput,    ///< a deleted computation or constant, an inserted input
  kBecameCompute,  ///< a deleted input, an inserted computation or constant
};
std::string_view ToString(RelationKind kind);

/// Joins nodes that are related but not identical.
struct Relation {
  RelationKind kind;
  std::vector<EntityId> before, after;
  double confidence = 1;
};

/// A node of which the ids of a trace say one thing, and structure another; see
/// diff/compare/contradictions.h.
struct Contradiction {
  EntityId before;
  EntityId by_id;         ///< its partner by id; none: deleted
  EntityId by_structure;  ///< its partner by structure
  EntityId origin;        ///< what that one was by id; none: it was inserted
  double confidence = 1;  ///< of the claim by structure
};

/// A connected set of changes: pairs that differ, inserted and deleted nodes.
struct Hunk {
  SlimVector<PairId> pairs;
  SlimVector<EntityId> inserted, deleted;
  PatternId pattern;  ///< none: no other hunk is equal
};

/// A place at which a pattern could be and is not.
struct Deviation {
  std::string where;          ///< "layers.7"
  std::string what;           ///< the title of what happened there instead; "" when nothing did
  std::vector<HunkId> hunks;  ///< the hunks there
};

/// Hunks that are equal but for their place.
struct Pattern {
  std::string title;  ///< "insert aten._to_copy.default before aten.mm.default"
  /// "layers.{0..31}": module paths, or layers found by structure; "" when there are none.
  std::string where;
  std::vector<std::string> except;    ///< places inside `where` that lack it: "layers.7"
  std::vector<Deviation> deviations;  ///< the same places, with what happened there
  std::vector<HunkId> hunks;
  int32_t nodes = 0;  ///< changed, inserted and deleted nodes of all its hunks
};

/// Counts as CONTRACTS defines them: pairs per atom, nodes, members of relations.
struct DiffSummary {
  int32_t same = 0, renamed = 0, moved = 0, changed = 0, derived = 0;
  int32_t inserted = 0, deleted = 0;
  int32_t replaced = 0, cloned = 0, merged = 0, became_input = 0, became_compute = 0;
};

/// The difference of two graphs. Every entity of both listings is in exactly one of `pairs`,
/// `inserted` and `deleted`. Pairs, `deleted` and relations are in before order, `inserted` in
/// after order.
struct GraphDiff {
  Listing before, after;
  IdVector<PairId, Pair> pairs;
  std::vector<EntityId> inserted, deleted;
  std::vector<Relation> relations;
  IdVector<HunkId, Hunk> hunks;  ///< in before order
  /// Of two hunks and more. Those with deviations first, then by nodes.
  IdVector<PatternId, Pattern> patterns;
  DiffSummary summary;
  /// With DiffOptions::contradictions, in before order.
  std::vector<Contradiction> contradictions = {};
  IdVector<EntityId, PairId> pair_of_before, pair_of_after;  ///< none: deleted, inserted

  /// Nothing but names differs.
  bool Equal() const;
};

}  // namespace strata
