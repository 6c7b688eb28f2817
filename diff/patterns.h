#pragma once
#include "diff/diff.h"
#include "diff/matching.h"

namespace strata {

/// Fills `hunks` and `patterns` of a diff that has everything else.
///
/// A hunk joins what belongs to one change: inserted and deleted nodes that touch each other, the
/// consumers that were rewired to or from them, members of a relation. Hunks are equal when they
/// have the same operators, statuses, fields and inner edges, wherever they are. Derived changes
/// are in no hunk.
void FindPatterns(const Matching& matching, GraphDiff& diff);

}  // namespace strata
