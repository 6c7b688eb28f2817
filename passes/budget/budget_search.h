#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/budget/memory_costs.h"
#include "passes/budget/save_network.h"
#include "passes/memory/offload.h"

namespace strata {

/// The peak of a graph of a module in bytes, after `recompute` and `offload` ran. May change the
/// module, which is a copy.
using PeakOracle = std::function<Result<int64_t>(Module& module, GraphId graph)>;

/// A plan with the peak that the oracle gave it, and the time that it adds to a step.
struct BudgetedPlan {
  MemoryPlanTags tags;
  int64_t peak_bytes = 0;
  double us = 0;
  int32_t num_recomputed = 0, num_offloaded = 0;  ///< nodes that are copied, and results
};

/// Finds plans of little time for a peak. What a plan costs is what the passes make of it: they run
/// on a copy of the module, and the oracle reports its peak.
///
/// Up to kMostStates combinations of tags are tried one by one: the result is then the best.
/// Otherwise plans come from SaveNetwork, without and with copies to the host. Between the two
/// neighbours of which one fits, the first layers take the plan that fits, as few as possible; then
/// results are saved again, those that save most time per byte first, in all layers alike, as far
/// as the budget holds. Deterministic.
class BudgetSearch {
 public:
  struct Options {
    bool offload = true;
    Offload::Options copies = {};
  };
  static constexpr size_t kMostStates = 4096;
  static constexpr int kMostRefinements = 12;

  /// REQUIRES: module and costs outlive this; costs are those of the graph.
  BudgetSearch(const Module& module, GraphId graph, const MemoryCosts& costs, Options options,
               PeakOracle oracle);

  /// Errors: no plan fits, with the smallest peak that was found; those of passes and oracle.
  Result<BudgetedPlan> Fit(int64_t bytes);
  /// Plans of which no other has a lower peak in as little time. By peak, lowest first; time falls.
  Result<std::vector<BudgetedPlan>> Front();

 private:
  struct Price {
    int64_t peak_bytes = 0;
    double us = 0;
    int32_t num_recomputed = 0, num_offloaded = 0;
  };
  Result<Price> PriceOf(const MemoryPlanTags& tags);
  Result<Price> Measure(const MemoryPlanTags& tags) const;
  void AddCosts(const Graph& changed, Price& price) const;
  static BudgetedPlan PlanOf(MemoryPlanTags tags, const Price& price);
  Result<BudgetedPlan> Priced(MemoryPlanTags tags);

  /// The nodes with several choices, if there are few enough of them; else nothing.
  std::optional<std::vector<NodeId>> FewChoices() const;
  Result<std::optional<BudgetedPlan>> FitOneByOne(const std::vector<NodeId>& nodes, int64_t bytes);
  Result<std::optional<BudgetedPlan>> FitByNetwork(bool offloads, int64_t bytes);
  /// The first `count` layers take `fewer`, the others `more`; all do if it is all layers.
  MemoryPlanTags Mix(const MemoryPlanTags& more, const MemoryPlanTags& fewer, size_t count) const;
  Result<BudgetedPlan> SaveMore(BudgetedPlan plan, int64_t bytes);

  const Module& module_;
  const Graph& graph_;
  const MemoryCosts& costs_;
  Options options_;
  PeakOracle oracle_;
  SaveNetwork network_;
  std::vector<int64_t> layers_;  // numbers, ascending
  std::map<MemoryPlanTags::Storage, Price> known_;
};

}  // namespace strata
