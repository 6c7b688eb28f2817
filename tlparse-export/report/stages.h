#pragma once
#include <vector>

#include "store/trace_reader.h"

namespace strata {

/// Two graphs of one compilation, the second made from the first.
struct Stage {
  const StoredGraph* from;
  const StoredGraph* to;
};

/// How the graphs of an imported log follow from one another, by the names that PyTorch gives them:
/// what Dynamo captured, the joint graph, forward and backward, and each of these as Inductor has
/// it. In the order of the log; graphs of other runs have none.
std::vector<Stage> StagesOf(const TraceReader& trace, const StoredRun& run);

}  // namespace strata
