#include "runtime/config/checkpoint.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/config/checks.h"

namespace strata {
namespace {

/// Some of the words `optimizer`, `lr_scheduler`, `dataloader`.
void ReadExclude(ConfigReader& reader, CheckpointConfig::Exclude& exclude) {
  constexpr std::string_view kKey = "checkpoint.exclude_from_loading";
  const std::pair<std::string_view, bool*> parts[] = {{"optimizer", &exclude.optimizer},
                                                      {"lr_scheduler", &exclude.lr_scheduler},
                                                      {"dataloader", &exclude.dataloader}};
  std::vector<std::string> words;
  reader.ReadWords(kKey, words);
  for (const std::string& word : words) {
    const auto part = std::ranges::find(parts, word, &std::pair<std::string_view, bool*>::first);
    if (part != std::end(parts)) {
      *part->second = true;
    } else if (word == "model" || word == "train_state") {
      reader.Refuse(kKey, fmt::format("a run that goes on needs the {}, begin another with --init",
                                      word == "model" ? "model" : "number of its step"));
    } else {
      reader.Refuse(kKey,
                    fmt::format("found '{}', name some of optimizer, lr_scheduler, dataloader, "
                                "with commas between them",
                                word));
    }
  }
  if (exclude.optimizer && !exclude.lr_scheduler) {
    reader.Refuse(kKey, "a new optimizer begins with the warm-up, name lr_scheduler, too");
  }
}

}  // namespace

void ReadCheckpoint(ConfigReader& reader, CheckpointConfig& checkpoint) {
  reader.Table("checkpoint");
  reader.Read("checkpoint.enable", checkpoint.enable);
  reader.Read("checkpoint.folder", checkpoint.folder);
  reader.Read("checkpoint.interval", checkpoint.interval);
  reader.Read("checkpoint.keep_latest_k", checkpoint.keep_latest_k);
  reader.Read("checkpoint.load_step", checkpoint.load_step);
  reader.Read("checkpoint.enable_first_step_checkpoint", checkpoint.enable_first_step_checkpoint);
  reader.Read("checkpoint.load_only", checkpoint.load_only);
  reader.Read<AsyncMode>("checkpoint.async_mode",
                         {{"disabled", AsyncMode::kDisabled},
                          {"async", AsyncMode::kAsync},
                          // The copy is in memory that no GPU reads.
                          {"async_with_pinned_mem", AsyncMode::kAsync}},
                         checkpoint.async_mode);
  reader.Read("checkpoint.last_save_model_only", checkpoint.last_save_model_only);
  reader.Read("checkpoint.last_save_in_hf", checkpoint.last_save_in_hf);
  reader.Read<ExportType>("checkpoint.export_dtype",
                          {{"float32", ExportType::kFloat32},
                           {"bfloat16", ExportType::kBFloat16},
                           {"float16", ExportType::kFloat16}},
                          checkpoint.export_dtype);
  reader.Read("checkpoint.initial_load_path", checkpoint.initial_load_path);
  reader.Fix("checkpoint.initial_load_model_only", true,
             "--resume goes on with the optimizer, too; take true");
  bool in_hugging_face = false;  // found from the names of the tensors
  reader.Read("checkpoint.initial_load_in_hf", in_hugging_face);
  if (in_hugging_face && checkpoint.initial_load_path.empty()) {
    reader.Refuse("checkpoint.initial_load_in_hf", "give checkpoint.initial_load_path, too");
  }
  reader.Fix("checkpoint.initial_load_in_hf_quantized", false,
             "quantized weights cannot be read, convert them to float32, bfloat16 or float16");
  reader.Fix("checkpoint.create_seed_checkpoint", false,
             "first values depend on seed and name alone, take false");
  ReadExclude(reader, checkpoint.exclude_from_loading);
}

Status CheckCheckpoint(const ConfigReader& reader, const CheckpointConfig& checkpoint) {
  if (checkpoint.folder.empty()) {
    return Impossible(reader, "checkpoint.folder", "name a folder below dump_folder");
  }
  if (checkpoint.folder.find("://") != std::string::npos) {
    return Impossible(reader, "checkpoint.folder",
                      "'{}' is not of this machine, name a folder below dump_folder",
                      checkpoint.folder);
  }
  const std::string& initial = checkpoint.initial_load_path;
  if (initial.find("://") != std::string::npos) {
    return Impossible(reader, "checkpoint.initial_load_path",
                      "'{}' is not of this machine, download it", initial);
  }
  if (!initial.empty() && !initial.starts_with('/')) {
    return Impossible(reader, "checkpoint.initial_load_path",
                      "'{}' depends on where strata is started, begin with '/', or take --init",
                      initial);
  }
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "checkpoint.interval", checkpoint.interval));
  STRATA_RETURN_IF_ERROR(
      CheckRange(reader, "checkpoint.keep_latest_k", checkpoint.keep_latest_k, 0, kMaxSize));
  if (checkpoint.keep_latest_k == 1) {
    return Impossible(
        reader, "checkpoint.keep_latest_k",
        "1 would remove the only checkpoint while the next is written, take 0 for all "
        "or at least 2");
  }
  STRATA_RETURN_IF_ERROR(
      CheckRange(reader, "checkpoint.load_step", checkpoint.load_step, -1, kMaxSize));
  if (checkpoint.last_save_in_hf && !checkpoint.last_save_model_only) {
    return Impossible(reader, "checkpoint.last_save_in_hf",
                      "Hugging Face's format has no optimizer state, take last_save_model_only "
                      "= true");
  }
  if (checkpoint.export_dtype != ExportType::kFloat32 && !checkpoint.last_save_model_only) {
    return Impossible(reader, "checkpoint.export_dtype",
                      "a checkpoint to resume from is float32, take last_save_model_only = true");
  }
  return Ok();
}

}  // namespace strata
