#pragma once
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Splits the replacement of a region where one replacement reads the result of another:
///
///   before  a = sin(x)   b = mm(a, w)   c = add(b, y)   d = relu(c)
///   after   f = sin_mm(x, w)            g = add_relu(f, y)
///
/// is `a, b -> f` and `c, d -> g`: what is above a cut reads the same on both sides, so does what
/// is below it, and one value of one type goes through. Where several cuts are possible, the names
/// of the new operators may decide (`add_relu`); where they do not, the region stays whole.
std::vector<Relation> SplitReplacement(const Listing& before, const Listing& after,
                                       const Matching& matching, const Relation& whole);

}  // namespace strata
