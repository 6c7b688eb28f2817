#pragma once
#include <string>

#include "base/result.h"
#include "cli/render/cost_text.h"
#include "diff/model/graph_diff.h"
#include "refs/ref.h"

namespace strata::cli {

/// Where the times of a side come from.
struct CostSource {
  const Snapshot& snapshot;
  std::string
      chrome;  ///< a trace of PyTorch's profiler; "": what `strata train --profile` recorded
};

/// How costs changed between the graphs of a diff. Errors: no times of one of them.
Result<CostDiff> CostsOfDiff(const GraphDiff& diff, const CostSource& before,
                             const CostSource& after);

}  // namespace strata::cli
