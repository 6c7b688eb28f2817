#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "passes/budget/budget_search.h"
#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Tags forward nodes so that a step needs at most `bytes` at its peak and little more time: each
/// result is saved, recomputed or offloaded. Only attributes change; `recompute` and `offload`
/// after it do what they say, with the same options of `offload`.
///
///   budget{bytes=8000000},recompute,offload
///
/// The peak is that of the graph beside its inputs, as LivePeakBytes has it; a training sets an
/// oracle that asks the memory planner of the executor. Times are modelled (memory_costs.h), or
/// those of a profile (recorded_times.h).
/// Graphs without backward are left alone. Errors: no plan fits, with the smallest peak found.
/// Source: torchtitan's auto_perf_maxing, with a minimum cut instead of linear programs.
class Budget final : public Pass {
 public:
  struct Options {
    int64_t bytes = 0;
    bool offload = true;
    int64_t prefetch = 1, defer = 1;
    std::string topology = {};
    std::string times = {};
    void Bind(OptionList& list) {
      list.Add("bytes", bytes, "of the peak of a step beside its inputs");
      list.Add("offload", offload, "results may be copied to memory of the host");
      list.Add("prefetch", prefetch, "as of the pass offload");
      list.Add("defer", defer, "as of the pass offload");
      list.Add("topology", topology, "whose times are modelled; empty: by the device of the graph");
      list.Add("times", times,
               "file of recorded times, of strata profile REF --json: nodes cost what they took");
    }
  };
  static constexpr std::string_view kSummary =
      "tag forward nodes: save, recompute or offload, in little time under a peak in bytes";

  Budget() = default;
  explicit Budget(Options options) : options_(std::move(options)) {}
  void SetOracle(PeakOracle oracle) { oracle_ = std::move(oracle); }
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
  PeakOracle oracle_;
};

/// The search of the pass for one graph. `costs` must outlive it.
BudgetSearch SearchOf(const Module& module, GraphId graph, const MemoryCosts& costs,
                      const Budget::Options& options, PeakOracle oracle = {});
/// Its costs. Errors: an unknown topology.
Result<MemoryCosts> CostsOf(const Graph& graph, const std::string& topology);

}  // namespace strata
