#pragma once
#include <memory>
#include <optional>
#include <string>

#include "passes/core/instrumentations.h"
#include "refs/recording/trace_recorder.h"
#include "store/environment.h"
#include "store/proofs.h"
#include "store/trace_writer.h"

namespace strata {

/// The one run that a command records into a trace of its own; nothing when none is asked for.
class Recording {
 public:
  /// Creates the trace at `path`, if there is one, and begins the run. Errors as
  /// TraceWriter::Create.
  static Result<Recording> Begin(const std::optional<std::string>& path, const RunInfo& run);

  /// Says in the trace, if there is one, what the run executes its graphs with.
  Status AddEnvironment(const Environment& environment);

  /// Stores what a proof said of a pass of the current pipeline in the trace, if there is one.
  Status AddProof(const PassRun& pass, PassProof proof);

  /// For a run that is worth more than its trace: closes a trace that cannot be written to (disk
  /// full) as far as there is room, and records nothing from here on. REQUIRES: trace().
  void GiveUp();

  /// Null: nothing is recorded.
  TraceWriter* trace() { return trace_.get(); }
  /// Records pipelines. REQUIRES: trace().
  PassInstrumentation& watcher() { return *watcher_; }
  RunId run() const { return recorder_->run(); }
  /// `out/t.strata#run=1`; empty when nothing is recorded.
  std::string RunRef() const;

  /// Ends the run, which had this outcome, and the trace. An error is stored as the reason why the
  /// run ended. The trace of what failed is kept, and so is one that could not be written to its
  /// end: it holds all that had ended.
  Status End(const Status& outcome, bool was_interrupted = false);

 private:
  std::unique_ptr<TraceWriter> trace_;
  std::unique_ptr<TraceRecorder> recorder_;
  std::unique_ptr<RecordSnapshots> watcher_;
};

}  // namespace strata
