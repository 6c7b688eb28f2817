#pragma once
#include <map>

#include "passes/core/pass.h"
#include "store/trace_writer.h"

namespace strata {

/// Records pipelines into a run of a trace: every program before the first pass, then each pass
/// with the programs that it changed.
///
///     STRATA_TRY(RunId run, trace.BeginRun({.kind = RunKind::kOpt, .pipeline = manager.Text()}));
///     TraceRecorder recorder(trace, run);
///     RecordSnapshots record(recorder);
///     manager.Watch(record);
///
/// Passes of consecutive pipelines are numbered consecutively. Create the trace before the module's
/// nodes, and pass `trace.next_stable_id()` to Module::ReserveStableIds.
class TraceRecorder final : public SnapshotSink {
 public:
  /// REQUIRES: `trace` outlives this, and `run` is a run of it that has not ended.
  TraceRecorder(TraceWriter& trace, RunId run) : trace_(trace), run_(run) {}

  Status Begin(std::string_view pipeline, const Module& module) override;
  Status Write(const PassRun& run, const Module& module) override;
  Status End(const Module& module) override;

  RunId run() const { return run_; }
  /// The index under which a pass of the current pipeline is recorded.
  int32_t IndexOf(const PassRun& run) const { return first_index_ + run.index; }

 private:
  /// Records what a pass did to one program; `changed`: store a new snapshot.
  Status WriteProgram(const PassRun& run, const Graph& graph, bool changed,
                      std::vector<Provenance> births);
  SnapshotId Last(GraphId graph) const;
  /// Whether the program differs from its last snapshot.
  bool Differs(const Graph& graph) const;

  TraceWriter& trace_;
  RunId run_;
  std::map<GraphId, SnapshotId> last_;
  int32_t first_index_ = 0;  // of the pipeline that is being recorded
  int32_t next_index_ = 0;
};

}  // namespace strata
