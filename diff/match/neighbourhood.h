#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "diff/graph/keyed.h"
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

/// Of everything at most `radius` edges away.
/// Nodes with more than Matching::kMaxEdges operands (users) do not look at their operands (users):
/// one change among them would make them unlike.
std::vector<uint64_t> RadiusHashes(const Matching& matching, Side side, const ScopePair& scope,
                                   LabelKind labels, int radius);

/// The same for both sides and all radii up to `max_radius`, of nodes that are not matched and may
/// have an equal on the other side: element r holds those of radius r, by side, in order. Costs
/// little where the sides have little in common: a node without an equal is followed no further.
std::vector<std::array<std::vector<Keyed>, 2>> CommonRadiusHashes(const Matching& matching,
                                                                  const ScopePair& scope,
                                                                  LabelKind labels, int max_radius);

}  // namespace strata
