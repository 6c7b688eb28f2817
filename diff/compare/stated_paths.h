#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "diff/model/graph_diff.h"

namespace strata {

/// Pairs of nodes by name, as in DiffOptions::pins.
using PinnedPairs = std::vector<std::pair<std::string, std::string>>;

/// What parameters of one path and type on both sides show.
enum class PathEvidence : uint8_t {
  kInputs,   ///< which inputs are the same
  kReaders,  ///< and which computations: those of one operator that read the same parameters
};

/// Where a diff contradicts what the paths show that inputs state (see StatedPath): all that they
/// show, pairs by name, as pins for another diff. Empty: the diff agrees with all of it.
PinnedPairs PairsOfPaths(const GraphDiff& diff, PathEvidence evidence);

/// How many nodes a diff touches: inserted, deleted, changed or moved.
int32_t CountTouched(const GraphDiff& diff);
/// The same, but nodes that read one value in place of one other count once: one change redirects
/// all users of a value.
int32_t CountChanges(const GraphDiff& diff);

/// Shows pins as what they are evidence of: inputs known by their paths, computations next to them.
void MarkAsInputs(const PinnedPairs& pins, GraphDiff& diff);

}  // namespace strata
