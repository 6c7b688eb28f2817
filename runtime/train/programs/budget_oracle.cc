#include "runtime/train/programs/budget_oracle.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/budget/budget.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/exec/predicted_memory.h"
#include "runtime/train/programs/programs.h"

namespace strata {

namespace {

/// Of the results of a step but the loss.
int64_t GradientBytes(const Graph& step) {
  int64_t bytes = 0;
  const std::vector<ValueId> results = step.operands(step.output());
  for (size_t i = 1; i < results.size(); ++i)
    bytes += step.module().types().Bytes(step.value(results[i]).type).value_or(0);
  return bytes;
}

/// The peak of a step with these passes behind it, as TrainingGraphs::planned_bytes has it: its
/// graphs run one after the other.
class StepPeak {
 public:
  StepPeak(std::string later, const PlanOptions& options, const Constants& constants)
      : later_(std::move(later)), options_(options), constants_(constants) {}

  Result<int64_t> operator()(Module& module, GraphId graph) {
    // Without a manager: nothing is checked or recorded of a copy.
    STRATA_TRY(const auto rest, ParsePipeline(later_, AllPasses()));
    for (const std::unique_ptr<Pass>& next : rest)
      if (auto done = next->Run(module); !done) return std::move(done).error();
    STRATA_TRY(const PlannedMemory step, PredictMemory(module.graph(graph), options_, constants_));
    int64_t held = step.held + step.constants, transient = step.transient;
    if (module.FindGraph(kStepGraph) != &module.graph(graph)) return held + transient;
    int64_t sums = step.outputs;
    if (const Graph* const accumulate = module.FindGraph(kAccumulateGraph)) {
      STRATA_TRY(const PlannedMemory memory, Other(*accumulate));
      if (step.lendable < step.held) sums = GradientBytes(module.graph(graph));
      held += memory.held + memory.constants;
      transient = std::max(transient + sums, memory.transient + sums + step.outputs);
    }
    if (const Graph* const optimizer = module.FindGraph(kOptimizerGraph)) {
      STRATA_TRY(const PlannedMemory memory, Other(*optimizer));
      const bool is_lent = memory.borrows && memory.held <= step.lendable;
      held += memory.constants + (is_lent ? 0 : memory.held);
      transient = std::max(transient, memory.transient + sums);
    }
    return held + transient;
  }

 private:
  /// Of a graph that is the same in all plans of the step.
  Result<PlannedMemory> Other(const Graph& graph) {
    const auto found = others_.find(graph.id());
    if (found != others_.end()) return found->second;
    STRATA_TRY(const PlannedMemory memory, PredictMemory(graph, options_, constants_));
    return others_.emplace(graph.id(), memory).first->second;
  }

  std::string later_;
  PlanOptions options_;
  const Constants& constants_;
  std::map<GraphId, PlannedMemory> others_;
};

}  // namespace

void AskPlannerForPeaks(std::span<const std::unique_ptr<Pass>> passes, const PlanOptions& options,
                        const Constants& constants) {
  std::string later;
  for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
    if (auto* const budget = dynamic_cast<Budget*>(pass->get()))
      budget->SetOracle(StepPeak(later, options, constants));
    later = (*pass)->Text() + (later.empty() ? "" : "," + later);
  }
}

}  // namespace strata
