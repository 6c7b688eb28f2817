#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// A plan of the pass `budget` for the graph after.
struct MemoryPlan {
  double peak_bytes = 0;
  double added_us = 0;  ///< to a step
  int32_t recomputed = 0, offloaded = 0;
  std::string passes;  ///< that apply it
};
/// Plans of which none is better in both peak and time, lowest peak first.
struct MemoryPlans {
  std::string words;  ///< what is shown; or why there is nothing
  std::vector<MemoryPlan> plans;
};
/// Takes seconds for large graphs. Times are measured where the comparison has measures.
MemoryPlans MemoryPlansOf(const Comparison& comparison);

}  // namespace strata::viewer
