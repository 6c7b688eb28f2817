#include "runtime/train/budget_oracle.h"

#include <string>
#include <utility>

#include "passes/budget/budget.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/exec/predicted_peak.h"

namespace strata {

void AskPlannerForPeaks(std::span<const std::unique_ptr<Pass>> passes, const PlanOptions& options,
                        const Constants& constants) {
  std::string later;
  for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
    if (auto* const budget = dynamic_cast<Budget*>(pass->get())) {
      budget->SetOracle(
          [later, options, &constants](Module& module, GraphId graph) -> Result<int64_t> {
            // Without a manager: nothing is checked or recorded of a copy.
            STRATA_TRY(const auto rest, ParsePipeline(later, AllPasses()));
            for (const std::unique_ptr<Pass>& next : rest)
              if (auto done = next->Run(module); !done) return std::move(done).error();
            return PredictPeak(module.graph(graph), options, constants);
          });
    }
    later = (*pass)->Text() + (later.empty() ? "" : "," + later);
  }
}

}  // namespace strata
