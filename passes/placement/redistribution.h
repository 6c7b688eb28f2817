#pragma once
#include <cstddef>
#include <vector>

#include "passes/placement/placement.h"

namespace strata {

/// A change of the placement on one axis: a collective of its ranks, or work of each rank.
///
///   S → R  all-gather        P → R  all-reduce        P → S  reduce-scatter
///   S → S  all-to-all        R → S  a part is kept    R → P  all but the first rank keep zeros
///   P(avg) → P(sum)  summands are divided by the number of ranks
///   T → E, E → T  all-to-all: rows to the ranks of their experts, and back to those of their
///   tokens
struct AxisChange {
  size_t axis;
  Placement from, to;
};

/// The changes that lead from one to the other, in order. Shards of one dimension nest, the outer
/// axis first (strided shards and parts of blocks nest inside): an axis is gathered before an outer
/// one of its dimension changes, and cut again after it.
std::vector<AxisChange> PlanRedistribution(const Placements& from, const Placements& to);

/// How many changes from `first` on are one of a group: neighbours in the mesh that have a name
/// together, as the parts of `fsdp` between which `ep` ends, and change alike. `group`: the axes.
size_t CountJoined(const std::vector<AxisChange>& changes, size_t first, const Mesh& mesh,
                   MeshAxis& group);

/// Estimated time of a redistribution in bytes that a rank sends or copies. `bytes`: of the whole
/// tensor. Infinite: rows in the order of experts (T, E) are not gathered.
double RedistributionCost(const Placements& from, const Placements& to, double bytes,
                          const Mesh& mesh);
/// Estimated time, in the same unit, of the sums that ranks exchange inside an operator: `bytes` on
/// each rank.
double ExchangeCost(double bytes);

}  // namespace strata
