#include "runtime/train/resume.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/files/safetensors.h"
#include "runtime/train/files/checkpoint_folder.h"
#include "runtime/train/files/metrics.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// A regular file with bytes in it: a device or an empty file has nothing to lose.
bool HasContent(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) > 0 && !error;
}

Error ModelOnly(const Checkpoint& checkpoint) {
  const std::string& path = checkpoint.model.path();
  return Error(
      "checkpoint of the model alone: {}: it has no optimizer state to continue from; begin "
      "another training with --init {} and another dump_folder, or train with "
      "checkpoint.last_save_model_only = false",
      path, path);
}

Error LongerRun(const Checkpoint& checkpoint, const TrainConfig& config) {
  return Error(
      "checkpoint of a longer run: {}: {} steps are done, steps = {}; train more steps, or "
      "take another with checkpoint.load_step",
      checkpoint.model.path(), checkpoint.info.step, config.steps);
}

/// The start of a run that `--resume` was not given for.
Result<RunStart> StartAnew(const TrainConfig& config, const ResumeOptions& options,
                           const std::string& folder, const std::vector<int64_t>& steps) {
  if (steps.empty() || config.checkpoint.load_only) return RunStart();
  if (options.overwrite) {
    RunStart start;
    start.warnings.push_back(
        fmt::format("checkpoints up to step {} are in {}: the first checkpoint of this run "
                    "replaces them; until then --resume continues from them",
                    steps.back(), folder));
    return start;
  }
  for (const int64_t step : steps) {
    STRATA_TRY(const Checkpoint checkpoint, LoadCheckpoint(folder, step));
    if (!checkpoint.optimizer) continue;
    return Error(
        "checkpoints of another run: {}: continue with --resume, choose another dump_folder, or "
        "replace them with --overwrite",
        folder);
  }
  return Error(
      "checkpoints of another run: {}: they hold the model alone; begin another training with "
      "--init {} and another dump_folder, or replace them with --overwrite",
      folder, CheckpointPath(folder, steps.back()));
}

/// The start from `checkpoint.load_step`.
Result<RunStart> StartFromStep(const TrainConfig& config, const ResumeOptions& options,
                               const std::string& folder, const std::vector<int64_t>& steps) {
  const int64_t step = config.checkpoint.load_step;
  STRATA_TRY(Checkpoint checkpoint, LoadCheckpoint(folder, step));
  if (step > config.steps) return LongerRun(checkpoint, config);
  const bool is_finished = step == config.steps;
  if (!is_finished && !checkpoint.optimizer) return ModelOnly(checkpoint);
  RunStart start{.checkpoint = std::move(checkpoint), .is_finished = is_finished, .warnings = {}};
  if (is_finished || config.checkpoint.load_only || steps.back() == step) return start;
  if (!options.overwrite) {
    return Error(
        "checkpoints of later steps: {}: there are some up to step {}, and checkpoint.load_step = "
        "{} would replace them; allow it with --overwrite, or copy {} to another dump_folder",
        folder, steps.back(), step, CheckpointPath(folder, step));
  }
  start.warnings.push_back(
      fmt::format("checkpoints up to step {} are in {}: the first checkpoint of this run replaces "
                  "those after step {}; until then --resume continues from the latest",
                  steps.back(), folder, step));
  return start;
}

/// The start from the latest checkpoint that has an optimizer state. One of the model alone is the
/// end of a run, perhaps of a shorter one.
Result<RunStart> StartFromLatest(const TrainConfig& config, const std::string& folder,
                                 const std::vector<int64_t>& steps) {
  RunStart start;
  if (steps.empty()) return start;
  STRATA_TRY(Checkpoint latest, LoadCheckpoint(folder, steps.back()));
  if (latest.info.step > config.steps) return LongerRun(latest, config);
  start.is_finished = latest.info.step == config.steps;
  if (start.is_finished || latest.optimizer) {
    start.checkpoint = std::move(latest);
    return start;
  }
  for (auto step = std::next(steps.rbegin()); step != steps.rend(); ++step) {
    STRATA_TRY(Checkpoint checkpoint, LoadCheckpoint(folder, *step));
    if (!checkpoint.optimizer) continue;
    start.warnings.push_back(
        fmt::format("{} holds the model alone: continuing from step {}, the latest checkpoint "
                    "with an optimizer state",
                    latest.model.path(), *step));
    start.checkpoint = std::move(checkpoint);
    return start;
  }
  return ModelOnly(latest);
}

}  // namespace

std::string CheckpointFolder(const TrainConfig& config) {
  return fmt::format("{}/{}", config.dump_folder, config.checkpoint.folder);
}

Result<RunStart> FindRunStart(const TrainConfig& config, const ResumeOptions& options) {
  if (!config.checkpoint.enable) {
    if (!options.resume) return RunStart();
    return Error(
        "nothing to resume: --resume: give --set checkpoint.enable=true and the "
        "dump_folder of the run");
  }
  const std::string folder = CheckpointFolder(config);
  const std::vector<int64_t> steps = ListCheckpoints(folder);
  if (!options.resume) return StartAnew(config, options, folder, steps);
  if (config.checkpoint.load_step >= 0) return StartFromStep(config, options, folder, steps);
  return StartFromLatest(config, folder, steps);
}

Status WriteMissingOutputs(const Checkpoint& checkpoint, const std::optional<std::string>& metrics,
                           const std::optional<std::string>& parameters) {
  if (metrics && HasContent(*metrics + ".partial")) {
    STRATA_TRY(MetricsWriter writer, MetricsWriter::Create(*metrics, checkpoint.info.step));
    STRATA_RETURN_IF_ERROR(writer.Commit());
  }
  if (!parameters || HasContent(*parameters)) return Ok();
  std::vector<TensorView> tensors;
  for (const TensorView* tensor : checkpoint.model.tensors())
    tensors.push_back(*tensor);
  const bool is_exact =
      !checkpoint.info.is_hugging_face &&
      std::ranges::all_of(tensors, [](const TensorView& tensor) {
        return tensor.dtype == TensorDtype::kF32 || tensor.dtype == TensorDtype::kF64;
      });
  if (!is_exact) {
    return Error(
        "parameters of a finished run: {}: {} has them in another layout or type; take them from "
        "there",
        *parameters, checkpoint.model.path());
  }
  return WriteSafetensors(*parameters, std::move(tensors));
}

}  // namespace strata
