#include "runtime/train/placed_step.h"

#include <utility>

#include "passes/core/pass_manager.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/trace_programs.h"
#include "runtime/train/trainer.h"

namespace strata {

Result<std::unique_ptr<Module>> TraceUnplaced(const TrainConfig& config) {
  auto module = std::make_unique<Module>();
  Constants constants;
  STRATA_RETURN_IF_ERROR(TraceTraining(TrainSpec(config), *module, constants));
  STRATA_TRY(auto passes, TrainingPasses(config, kDefaultPasses));
  PassManager manager;
  for (auto& pass : passes) {
    if (pass->name() == "place") break;
    manager.Add(std::move(pass));
  }
  STRATA_TRY([[maybe_unused]] const Changed changed, manager.Run(*module));
  return module;
}

}  // namespace strata
