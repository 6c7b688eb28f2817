#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/shapes.h"
#include "passes/placement/costs/topology.h"
#include "runtime/config/config.h"

namespace strata::cli {

/// A way to train a model on several ranks.
struct Layout {
  int64_t dp_replicate = 1, fsdp = 1, cp = 1, tp = 1;
  std::string_view what = {};      ///< is different from the plan of the model
  std::string_view settings = {};  ///< for that, as words that `strata train --set` takes
  bool is_found = false;           ///< placed by a plan that `strata place` finds for the mesh
};

/// Layouts of 2 and of 4 ranks that differ in what a step costs.
std::span<const Layout> BenchLayouts();

/// A layout of a shape, and what `strata simulate` estimates of the graphs that a step executes,
/// one node after another: ranks that are threads exchange by the cores that compute.
struct PredictedLayout {
  std::string name;
  TrainConfig config;
  int64_t ranks = 0;
  double compute_us = 0, communication_us = 0;
  double us() const { return compute_us + communication_us; }
};

/// The sequences of all ranks in a step.
struct Batch {
  int64_t sequences = 0, tokens = 0;  ///< tokens: of each
};

/// A found plan is written to `folder`, which must last as long as the configuration is used.
/// Errors: ranks that do not divide the batch; those of the search.
Result<PredictedLayout> Predict(const BenchShape& shape, const Layout& layout, const Batch& batch,
                                const Topology& topology, const std::string& folder);

}  // namespace strata::cli
