#pragma once
#include <cstddef>
#include <vector>

#include "passes/placement/placement.h"

namespace strata {

/// A change of the placement on one axis: a collective of its ranks, or work of each rank.
///
///   S → R  all-gather        P → R  all-reduce        P → S  reduce-scatter
///   S → S  all-to-all        R → S  a part is kept    R → P  all but the first rank keep zeros
struct AxisChange {
  size_t axis;
  Placement from, to;
};

/// The changes that lead from one to the other, in order. Shards of one dimension nest, the outer
/// axis first (strided shards nest inside): an axis is gathered before an outer one of its
/// dimension changes, and cut again after it.
std::vector<AxisChange> PlanRedistribution(const Placements& from, const Placements& to);

/// Estimated time of a redistribution in bytes that a rank sends or copies. `bytes`: of the whole
/// tensor.
double RedistributionCost(const Placements& from, const Placements& to, double bytes,
                          const Mesh& mesh);

}  // namespace strata
