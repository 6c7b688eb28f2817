#include "bench/step_module.h"

#include "bench/shapes.h"
#include "passes/core/pass_manager.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/trace_programs.h"

namespace strata::cli {

void AddWords(std::string_view text, std::vector<std::string>& words) {
  while (!text.empty()) {
    const size_t end = text.find(' ');
    if (end > 0) words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

Result<std::unique_ptr<Module>> StepModule(std::initializer_list<std::string_view> settings,
                                           std::string_view pipeline) {
  std::vector<std::string> words;
  for (const std::string_view text : settings)
    AddWords(text, words);
  STRATA_TRY(const TrainConfig config, ConfigOf(words));
  return StepModule(config, pipeline);
}

Result<std::unique_ptr<Module>> StepModule(const TrainConfig& config, std::string_view pipeline) {
  auto module = std::make_unique<Module>();
  Constants constants;
  STRATA_RETURN_IF_ERROR(TraceTraining(TrainSpec(config), *module, constants));
  PassManager manager;
  STRATA_TRY(auto passes, TrainingPasses(config, pipeline));
  for (auto& pass : passes)
    manager.Add(std::move(pass));
  STRATA_TRY([[maybe_unused]] const Changed changed, manager.Run(*module));
  return module;
}

}  // namespace strata::cli
