#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/train/files/checkpoint.h"

/// Where a run starts, given the files of earlier runs. No file of another run is replaced unless
/// the user allows it.
namespace strata {

/// `<dump_folder>/<checkpoint.folder>`.
std::string CheckpointFolder(const TrainConfig& config);

struct ResumeOptions {
  bool resume = false;     ///< continue from a checkpoint, if the folder has any
  bool overwrite = false;  ///< replace checkpoints of another run
};

struct RunStart {
  std::optional<Checkpoint> checkpoint;  ///< none: the run starts with step 1
  bool is_finished = false;              ///< the checkpoint is of the last step: none is left
  std::vector<std::string> warnings;

  /// Steps that are done.
  int64_t step() const { return checkpoint ? checkpoint->info.step : 0; }
};

/// Chooses the checkpoint that the run continues from: `checkpoint.load_step`, else that of the
/// last step (the run is finished), else the latest with an optimizer state. Errors:
///
///   - without `resume`, a folder that has checkpoints;
///   - with it, one that has only checkpoints of the model, or a checkpoint of a longer run;
///   - without `overwrite`, checkpoints of later steps than load_step, which the run would replace.
Result<RunStart> FindRunStart(const TrainConfig& config, const ResumeOptions& options);

/// Writes what a finished run was asked for and did not write before it was killed: the metrics
/// that stand in `<metrics>.partial`, and the parameters. Other files stay as they are.
/// Errors: parameters that the checkpoint holds in another layout or type only.
Status WriteMissingOutputs(const Checkpoint& checkpoint, const std::optional<std::string>& metrics,
                           const std::optional<std::string>& parameters);

}  // namespace strata
