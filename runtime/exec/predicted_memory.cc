#include "runtime/exec/predicted_memory.h"

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

Result<PlannedMemory> PredictMemory(const Graph& graph, const PlanOptions& options,
                                    const Constants& constants) {
  // What a rank computes of its place alone is computed when the plan is bound.
  std::optional<LoneRank> rank;
  const std::string_view mesh = graph.attribute(graph.output(), kMeshAttribute);
  if (!mesh.empty() && RankTeam::CurrentRank() < 0) {
    STRATA_TRY(Mesh parsed, Mesh::Parse(mesh));
    rank.emplace(std::move(parsed));
  }
  STRATA_TRY(Plan plan, Lower(graph, options, HintsOf(graph)));
  if (options.is_static() || !plan.kernels.empty()) {
    RegisterPlanOperators();
    const auto kernels = KernelLibrary::Unbuilt(plan.kernels.size(), plan.flex_kernels.size());
    STRATA_TRY(const BodyPrograms bodies, BindBodies(plan, constants));
    STRATA_TRY(const std::unique_ptr<StaticProgram> program,
               StaticProgram::Bind(plan, constants, kernels.get(), bodies, {}));
    return program->planned_memory();
  }
  STRATA_TRY(const Executor executor, Executor::Bind(std::move(plan), constants));
  return executor.planned_memory();
}

}  // namespace strata
