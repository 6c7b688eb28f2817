#include "runtime/exec/predicted_peak.h"

#include <memory>
#include <utility>

#include "runtime/codegen/kernel_library.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/static/static_program.h"
#include "runtime/plan/input_sizes.h"

namespace strata {

Result<int64_t> PredictPeak(const Graph& graph, const PlanOptions& options,
                            const Constants& constants) {
  STRATA_TRY(Plan plan, Lower(graph, options, HintsOf(graph)));
  PlannedMemory memory;
  if (options.is_static() || !plan.kernels.empty()) {
    const auto kernels = KernelLibrary::Unbuilt(plan.kernels.size(), plan.flex_kernels.size());
    STRATA_TRY(const std::unique_ptr<StaticProgram> program,
               StaticProgram::Bind(plan, constants, kernels.get(), {}));
    memory = program->planned_memory();
  } else {
    STRATA_TRY(const Executor executor, Executor::Bind(std::move(plan), constants));
    memory = executor.planned_memory();
  }
  return memory.held + memory.constants + memory.transient;
}

}  // namespace strata
