#include "cli/train/train_inputs.h"

namespace strata::cli {

std::vector<NamedPath> TrainInputs(const std::string& config_path, const TrainConfig& config,
                                   const std::optional<std::string>& init,
                                   const std::optional<std::string>& tokens) {
  std::vector<NamedPath> inputs = {
      {"CONFIG", config_path},
      {"--init", init.value_or("")},
      {"--tokens", tokens.value_or("")},
      {"checkpoint.initial_load_path", config.checkpoint.initial_load_path}};
  if (config.dataloader.dataset != DatasetKind::kSynthetic) {
    for (const std::string& path : config.dataloader.dataset_path)
      inputs.push_back({"dataloader.dataset_path", path});
    for (const std::string& path : config.validator.dataset_path)
      inputs.push_back({"validator.dataset_path", path});
  }
  if (config.dataloader.dataset == DatasetKind::kText && config.dataloader.tokenizer != "bytes") {
    inputs.push_back({"dataloader.tokenizer", config.dataloader.tokenizer});
  }
  return inputs;
}

}  // namespace strata::cli
