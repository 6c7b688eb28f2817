#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Reorders independent nodes so that fewer bytes live at the peak. A graph stays as it is unless
/// its peak falls (LivePeakBytes).
///
///   before  a = big(x)  b = big(y)  s = sum(a)  t = sum(b)     // a and b live at once
///   after   a = big(x)  s = sum(a)  b = big(y)  t = sum(b)
///
/// List scheduling: of the nodes whose operands are there, the one that adds fewest bytes comes
/// next, where a node adds its results and frees what it reads last; of equal ones the first.
/// Nodes stay in their run of nodes of one phase. Nodes with effects, random numbers, collectives
/// and copies to and from the host keep their order among each other; accesses to memory that is
/// written keep theirs. Values are bitwise equal. Cost is linear in nodes times ready nodes.
class ReorderForPeak final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "reorder independent nodes for a lower peak of memory";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
