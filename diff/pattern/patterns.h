#pragma once
#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Fills `hunks` and `patterns` of a diff that has everything else.
///
/// Hunks of one key (diff/pattern/hunks.h) are a pattern; what is done at one place of some layers
/// and at another place of other layers is two. A pattern covers all layers that have its place;
/// the few that lack it are its deviations. Near linear in changes, linear in nodes.
///
/// `spent`: as for FindHunks.
void FindPatterns(const Matching& matching, LabelledSides* spent, GraphDiff& diff);

}  // namespace strata
