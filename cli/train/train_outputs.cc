#include "cli/train/train_outputs.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "cli/core/command.h"
#include "runtime/train/files/checkpoint_folder.h"
#include "runtime/train/programs/exported_model.h"
#include "runtime/train/resume.h"

namespace strata::cli {
namespace {

Status OpenFile(const std::optional<std::string>& path, std::optional<AtomicFile>& file) {
  if (!path) return Ok();
  STRATA_TRY(file, AtomicFile::Create(*path));
  return Ok();
}

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

double MemoryGiB(const Trainer& trainer) {
  if (const Device* device = trainer.device(); device != nullptr) {
    return static_cast<double>(device->memory().peak_allocated) / 0x1p30;
  }
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long size = 0, resident = 0;
  if (file == nullptr) return 0.0;
  const int read = std::fscanf(file, "%ld %ld", &size, &resident);
  std::fclose(file);
  if (read != 2) return 0.0;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 0x1p30;
}

Status TrainOutputs::Open(const TrainOutputPaths& paths, const Trainer& trainer, bool overwrite) {
  const CheckpointConfig& checkpoint = trainer.config().checkpoint;
  first_step_ = trainer.steps_done();
  overwrite_ = overwrite;
  has_gradients_ = paths.gradients.has_value();
  has_parameters_ = paths.parameters.has_value();
  has_checkpoints_ = checkpoint.enable && !checkpoint.load_only;
  return trainer.has_first_rank() ? OpenFiles(paths, trainer.config()) : Ok();
}

Status TrainOutputs::OpenFiles(const TrainOutputPaths& paths, const TrainConfig& config) {
  if (paths.metrics) {
    STRATA_TRY(metrics_, MetricsWriter::Create(*paths.metrics, first_step_));
  }
  STRATA_RETURN_IF_ERROR(OpenFile(paths.gradients, gradients_file_));
  STRATA_RETURN_IF_ERROR(OpenFile(paths.parameters, parameters_file_));
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (has_checkpoints_) {
    const auto replace_after = overwrite_ ? std::optional(first_step_) : std::nullopt;
    STRATA_TRY(checkpoints_, CheckpointWriter::Open(CheckpointFolder(config),
                                                    {.mode = checkpoint.async_mode,
                                                     .keep_latest_k = checkpoint.keep_latest_k,
                                                     .replace_after = replace_after}));
  }
  if (config.metrics.enable_tensorboard) {
    STRATA_TRY(events_, EventFile::Create(
                            fmt::format("{}/{}", config.dump_folder, config.metrics.save_tb_folder),
                            first_step_ + 1, SecondsSince1970()));
    last_events_ = std::chrono::steady_clock::now();
    last_events_step_ = first_step_;
  }
  return Ok();
}

Status TrainOutputs::AfterStep(const StepReport& report, Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  const int64_t step = report.metrics.step;
  if (metrics_) STRATA_RETURN_IF_ERROR(metrics_->Write(report.metrics));
  if (has_gradients_ && step == first_step_ + 1) {
    STRATA_RETURN_IF_ERROR(trainer.GatherGradients());
    if (gradients_file_) {
      for (const TensorView& gradient : trainer.Gradients())
        gradients_.push_back(CopyTensor(gradient));
    }
    trainer.KeepGradients(false);
  }
  if (events_ && (step == 1 || step % config.metrics.log_freq == 0)) {
    STRATA_RETURN_IF_ERROR(AddEvents(report, trainer));
  }
  const bool is_last = step == config.steps;
  const bool is_due = step % config.checkpoint.interval == 0 || is_last ||
                      (step == 1 && config.checkpoint.enable_first_step_checkpoint);
  return has_checkpoints_ && is_due ? SaveCheckpoint(trainer, is_last) : Ok();
}

Status TrainOutputs::SaveCheckpoint(Trainer& trainer, bool is_last) {
  const CheckpointConfig& options = trainer.config().checkpoint;
  CheckpointInfo info = trainer.Position();
  last_checkpoint_ = info.step;
  STRATA_RETURN_IF_ERROR(trainer.GatherState());
  if (!checkpoints_) return Ok();
  if (is_last && options.last_save_model_only) {
    info.has_optimizer = false;
    info.is_hugging_face = options.last_save_in_hf;
    const ExportedModel exported(
        trainer.config(), trainer.Parameters(),
        {.hugging_face = options.last_save_in_hf, .dtype = options.export_dtype});
    return checkpoints_->Save(info, {.model = exported.views(), .optimizer = {}});
  }
  return checkpoints_->Save(
      info, {.model = trainer.Parameters(), .optimizer = trainer.OptimizerTensors()});
}

Status TrainOutputs::AddEvents(const StepReport& report, const Trainer& trainer) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_events_).count();
  const auto steps = static_cast<double>(report.metrics.step - last_events_step_);
  last_events_ = now;
  last_events_step_ = report.metrics.step;
  std::vector<std::pair<std::string_view, double>> scalars = {
      {"loss_metrics/global_avg_loss", report.metrics.loss},
      {"grad_norm", report.metrics.grad_norm},
      {"lr/AdamW", report.metrics.lr},
      {"throughput(tps)", steps * static_cast<double>(report.tokens) / seconds},
      {"time_metrics/end_to_end(s)", seconds / steps},
      {trainer.device() != nullptr ? "memory/max_active(GiB)" : "memory/resident(GiB)",
       MemoryGiB(trainer)},
      {"n_tokens_seen", static_cast<double>(trainer.Position().tokens_seen)}};
  if (report.metrics.validation_loss) {
    scalars.emplace_back("validation_metrics/loss", *report.metrics.validation_loss);
  }
  return events_->Add(report.metrics.step, SecondsSince1970(), scalars);
}

Status TrainOutputs::CommitMetrics() {
  if (!overwrite_) {
    STRATA_TRY(const std::string kept, metrics_->KeepOlder());
    if (!kept.empty()) {
      Warn(
          fmt::format("metrics of another run had this name: {} holds them now; --overwrite "
                      "replaces them",
                      kept));
    }
  }
  return metrics_->Commit();
}

Result<std::string> TrainOutputs::SaveNow(Trainer& trainer) {
  if (!has_checkpoints_)
    return Error("no checkpoints are configured: train with --set checkpoint.enable=true");
  const int64_t step = trainer.steps_done();
  if (step == 0) return Error("no step is done: nothing to save");
  if (step > first_step_ && step != last_checkpoint_)
    STRATA_RETURN_IF_ERROR(SaveCheckpoint(trainer, /*is_last=*/false));
  if (checkpoints_) STRATA_RETURN_IF_ERROR(checkpoints_->Wait());
  return CheckpointPath(CheckpointFolder(trainer.config()), step);
}

Status TrainOutputs::FinishInterrupted(Trainer& trainer) {
  const int64_t step = trainer.steps_done();
  if (has_checkpoints_ && step > first_step_ && step != last_checkpoint_) {
    STRATA_RETURN_IF_ERROR(SaveCheckpoint(trainer, /*is_last=*/false));
  }
  if (checkpoints_) STRATA_RETURN_IF_ERROR(checkpoints_->Wait());
  return metrics_ && trainer.steps_done() > 0 ? CommitMetrics() : Ok();
}

void TrainOutputs::FinishFailed(const Trainer& trainer) {
  if (!checkpoints_ || trainer.steps_done() == 0) return;
  const Status written = checkpoints_->Wait();
  if (metrics_) {
    if (const Status committed = CommitMetrics(); !committed) return;
  }
}

Status TrainOutputs::Finish(Trainer& trainer) {
  if (has_parameters_) STRATA_RETURN_IF_ERROR(trainer.GatherState());
  if (gradients_file_) {
    STRATA_RETURN_IF_ERROR(AppendSafetensors(*gradients_file_, ViewsOf(gradients_)));
  }
  if (parameters_file_) {
    STRATA_RETURN_IF_ERROR(AppendSafetensors(*parameters_file_, trainer.Parameters()));
  }
  if (checkpoints_) STRATA_RETURN_IF_ERROR(checkpoints_->Wait());
  if (metrics_) STRATA_RETURN_IF_ERROR(CommitMetrics());
  if (gradients_file_) STRATA_RETURN_IF_ERROR(gradients_file_->Commit());
  return parameters_file_ ? parameters_file_->Commit() : Ok();
}

}  // namespace strata::cli
