#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/checkpoint_writer.h"
#include "runtime/train/files/event_file.h"
#include "runtime/train/files/metrics.h"
#include "runtime/train/programs/exported_model.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// Files that the command line of a training asks for.
struct TrainOutputPaths {
  std::optional<std::string> metrics, gradients, parameters;
};

/// The files that a run leaves. All are opened before the first step, so that no training is lost
/// to a bad path; those of the command line get their names together at the end. Of several
/// processes the one with the first rank writes; in the others, the same calls take part in
/// gathering what it writes.
class TrainOutputs {
 public:
  /// The run continues after `first_step`; metrics of later steps, which an older run wrote, are
  /// dropped. `overwrite`: its first checkpoint replaces those of later steps, its metrics those of
  /// another run.
  Status Open(const TrainOutputPaths& paths, const Trainer& trainer, bool overwrite);
  Status AfterStep(const StepReport& report, Trainer& trainer);
  /// The step after which the last checkpoint was written; 0: none was.
  int64_t last_checkpoint() const { return last_checkpoint_; }
  /// Writes a checkpoint of the last step, unless there is one, and waits for it. Returns its path.
  /// Errors: no checkpoints are configured, or no step was done.
  Result<std::string> SaveNow(Trainer& trainer);
  Status Finish(Trainer& trainer);
  /// Instead of Finish, of a run that was stopped: writes a checkpoint of the last step, gives what
  /// was written step by step its name, and drops the rest.
  Status FinishInterrupted(Trainer& trainer);
  /// Instead of Finish, of a run that failed: where it can resume from a checkpoint, metrics of the
  /// steps done get their name. Errors here are dropped: the run's own error is reported.
  void FinishFailed(const Trainer& trainer);

 private:
  Status OpenFiles(const TrainOutputPaths& paths, const TrainConfig& config);
  Status SaveCheckpoint(Trainer& trainer, bool is_last);
  Status CommitMetrics();
  Status AddEvents(const StepReport& report, const Trainer& trainer);

  std::optional<MetricsWriter> metrics_;
  std::optional<AtomicFile> gradients_file_, parameters_file_;
  std::vector<OwnedTensor> gradients_;
  std::optional<CheckpointWriter> checkpoints_;
  std::optional<EventFile> events_;
  std::chrono::steady_clock::time_point last_events_;
  int64_t last_events_step_ = 0;
  int64_t first_step_ = 0;  // done before this run
  int64_t last_checkpoint_ = 0;
  bool overwrite_ = false;
  bool has_gradients_ = false, has_parameters_ = false, has_checkpoints_ = false;  // files of them
};

/// What this process has in memory, or on a GPU the most that lived there at once, in GiB.
double MemoryGiB(const Trainer& trainer);

}  // namespace strata::cli
