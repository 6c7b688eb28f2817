#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diff/model/graph_diff.h"

namespace strata {

/// The fields of a pair as people want to read them.
struct ReadableFields {
  FieldDiffs fields;
  int32_t shifted = 0;  ///< operands that only stand at another place because of others in `fields`
};

/// The fields of `pair`, with its operands as additions to and removals from a list where that says
/// it in at most half as many lines. An output that loses its second result differs in all places
/// behind it; a reader wants to hear of one.
///
/// A path is that of the side that has the operand, `operands[3→5]` where both have one and the
/// places differ.
/// REQUIRES: `pair` is one of `diff`.
ReadableFields FoldShifts(const GraphDiff& diff, const Pair& pair);

/// "12 operands that only stand at another place".
std::string ShiftText(int32_t shifted);

}  // namespace strata
