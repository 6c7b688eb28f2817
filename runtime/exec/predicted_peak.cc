#include "runtime/exec/predicted_peak.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "passes/placement/placement.h"
#include "runtime/codegen/kernel_library.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/static/static_program.h"
#include "runtime/plan/input_sizes.h"
#include "runtime/ranks/lone_rank.h"

namespace strata {

Result<int64_t> PredictPeak(const Graph& graph, const PlanOptions& options,
                            const Constants& constants) {
  // What a rank computes of its place alone is computed when the plan is bound.
  std::optional<LoneRank> rank;
  const std::string_view mesh = graph.attribute(graph.output(), kMeshAttribute);
  if (!mesh.empty() && RankTeam::CurrentRank() < 0) {
    STRATA_TRY(Mesh parsed, Mesh::Parse(mesh));
    rank.emplace(std::move(parsed));
  }
  STRATA_TRY(Plan plan, Lower(graph, options, HintsOf(graph)));
  PlannedMemory memory;
  if (options.is_static() || !plan.kernels.empty()) {
    RegisterPlanOperators();
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
