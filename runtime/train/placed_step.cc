#include "runtime/train/placed_step.h"

#include <utility>

#include "passes/core/pass_manager.h"
#include "runtime/train/pipeline.h"
#include "runtime/train/trace_programs.h"
#include "runtime/train/trainer.h"

namespace strata {
namespace {

Result<std::unique_ptr<Module>> Trace(const TrainConfig& config, bool is_placed) {
  auto module = std::make_unique<Module>();
  Constants constants;
  STRATA_RETURN_IF_ERROR(TraceTraining(TrainSpec(config), *module, constants));
  STRATA_TRY(auto passes, TrainingPasses(config, kDefaultPasses));
  PassManager manager;
  for (auto& pass : passes) {
    const bool is_last = pass->name() == "place";
    if (!is_last || is_placed) manager.Add(std::move(pass));
    if (is_last) break;
  }
  STRATA_TRY([[maybe_unused]] const Changed changed, manager.Run(*module));
  return module;
}

}  // namespace

Result<std::unique_ptr<Module>> TraceUnplaced(const TrainConfig& config) {
  return Trace(config, /*is_placed=*/false);
}

Result<std::unique_ptr<Module>> TracePlaced(const TrainConfig& config) {
  return Trace(config, /*is_placed=*/true);
}

}  // namespace strata
