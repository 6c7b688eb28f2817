#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace strata::prove {

/// A value of a lowered graph that has another placement than that of the placed graph.
struct PlacementFinding {
  std::string node;      ///< of the lowered graph
  std::string operand;   ///< the node that it reads and that made the placement; "": none
  std::string axis;      ///< "tp"
  std::string expected;  ///< "R"
  std::string derived;   ///< "P(sum)", or why there is none: "a sum of copies"
};

/// "mm_3: P(sum) on tp, expected R: from mm_2"
std::string ToString(const PlacementFinding& finding);

struct PlacementCheck {
  int64_t nodes = 0;    ///< calls that both graphs have
  int64_t unknown = 0;  ///< of which the rules do not give all placements
  std::vector<PlacementFinding> findings;
};

/// Derives the placement of every value of a lowered graph from those of its operands, by the rules
/// of operators and collectives, and compares it with that of the same value in the placed graph.
/// Where they differ, and where the rules say nothing, the latter is assumed for what reads the
/// value.
///
/// No value is computed, so this holds for all sizes, and says nothing of values: parts of another
/// rank, other literals, other operands of equal placement. Rows by token or expert, and parts that
/// axes cut neither in the order of the mesh nor in the reverse, count as unknown. Takes
/// microseconds per node. Checks no nodes unless `lowered` is the program of a rank and `placed` is
/// not.
PlacementCheck CheckPlacements(const Graph& placed, const Graph& lowered);

}  // namespace strata::prove
