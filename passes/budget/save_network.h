#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/budget/memory_costs.h"
#include "passes/memory/tags.h"

namespace strata {

/// What happens to each forward node.
using MemoryPlanTags = IdVector<NodeId, MemoryTag>;

/// Chooses what is saved, offloaded and recomputed at a price of memory: the least time for
/// recomputation and copies plus `us_per_byte` times the bytes that stay, in the sum over all
/// results. That is a minimum cut: for each node, cutting in → out saves it, and cutting source →
/// in recomputes it, which needs its operands. Values that layers hand on to later ones are saved,
/// so layers are decided one by one, and equal layers equally.
///
/// Random numbers, integers of the program, the output layer and the loss, `topk`, and collectives
/// other than all-gathers are not recomputed; views are not saved.
class SaveNetwork {
 public:
  /// REQUIRES: graph and costs outlive this.
  SaveNetwork(const Graph& graph, const MemoryCosts& costs);

  /// kMustSave, kMustRecompute, or with `offloads` kMustCpuOffload. What backward does not need is
  /// kMustRecompute. Errors: backward needs a result of unknown type.
  Result<MemoryPlanTags> Solve(double us_per_byte, bool offloads) const;

  /// The plans for all prices: from saving everything that backward reads to the fewest bytes. Each
  /// has fewer bytes and takes longer than the one before; those between are the lower convex hull
  /// of all plans, at most `kMostPlans` of them.
  static constexpr size_t kMostPlans = 24;
  Result<std::vector<MemoryPlanTags>> Front(bool offloads) const;

 private:
  struct Point {
    MemoryPlanTags tags;
    double us = 0, bytes = 0;
  };
  Result<Point> SolvePoint(double us_per_byte, bool offloads) const;
  Status Refine(const Point& left, const Point& right, bool offloads,
                std::vector<Point>& between) const;

  const Graph& graph_;
  const MemoryCosts& costs_;
  IdVector<NodeId, int64_t> bytes_;  // of results with memory of their own; -1: unknown
  IdVector<NodeId, int64_t> offload_bytes_;
  IdVector<NodeId, bool> is_view_, is_kept_, is_read_;  // read by backward
};

}  // namespace strata
