#pragma once
#include <cstdint>
#include <optional>

#include "prove/layers/pair_cut.h"

namespace strata::prove {

/// Two graphs without the calls that a pass left as they were.
struct ChangedCalls {
  CutPair pair;
  int64_t left_out = 0;  ///< calls of the graph after the pass
};

/// Leaves out nodes of both graphs that are the same call: they have equal StableIds, operators,
/// literals, bodies and types but for placements, and read the same values, in memory that nothing
/// writes to. Calls that draw random numbers, and calls of Python code, stay.
///
/// A proof that the smaller graphs are equal, and compares each value that both have, is one of the
/// graphs. A call that is left out has equal results if its operands are equal, and so has what
/// stays, for all values that it reads in the place of those that are left out. So all values are
/// equal, by induction: a value that both graphs compute from one another's twins in turn would be
/// computed from itself in one of them. None: there are no such nodes, or inputs have moved.
std::optional<ChangedCalls> WithoutUnchangedCalls(const Graph& before, const Graph& after);

}  // namespace strata::prove
