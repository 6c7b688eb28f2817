#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/placement/costs/topology.h"

namespace strata {

/// What placements cost that AutoParallel found and exported as JSON, by its costs, which the file
/// has, and by those of Strata.
///
///     {"mesh": {"shape": [8, 8], "dim_names": ["dp", "tp"]},
///      "nodes": [{"name": "mm", "op": "aten.mm.default", "placement": "S(0)R",
///                 "inputs": [{"name": "w", "src_placement": "S(0)R", "dst_placement": "RR",
///                             "comm_cost": 717.6, "transition_cost": 1.0}, …],
///                 "compute_cost": 99.3, "dtype": "bfloat16", "shape": [16384, 4096]}, …]}
struct ExportedPlacement {
  struct Costs {
    double compute_us = 0, communication_us = 0;
    double us() const { return compute_us + communication_us; }
  };
  /// A call, or an operand of one that is redistributed.
  struct Item {
    std::string what;  ///< "mm: aten.mm.default", "mm, w: S(0)R -> RR"
    double theirs_us = 0, ours_us = 0;
  };
  std::string mesh;  ///< "dp=8,tp=8"
  Costs theirs, ours;
  std::vector<Item> items;  ///< those that cost something, in order of the file
  int64_t num_unknown = 0;  ///< nodes of unknown shape or placement, which Strata does not price
};

bool LooksLikeExportedPlacement(std::string_view text);

/// Errors, with `file:line:column`: the text is not JSON, or not of this form. Also those of
/// CostModel::Make.
Result<ExportedPlacement> EvaluateExported(std::string_view text, std::string_view file,
                                           const Topology& topology);

}  // namespace strata
