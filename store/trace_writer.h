#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/trace.h"

namespace strata {

/// Writes a trace. Every call that stores something is one transaction: when it returned, a kill
/// of the process loses nothing of it, and readers of the file see all of it or nothing. Use from
/// one thread.
///
/// After an error (disk full) the trace holds what earlier calls stored, and further calls but
/// `EndAfterError` fail.
class TraceWriter {
 public:
  enum class Mode : uint8_t {
    /// The trace stands under its name from the first moment; other processes read it while it
    /// grows, and after a kill it holds all that had ended. For `train` and `opt`.
    kLive,
    /// Written aside and renamed by Finish; without Finish nothing is left. For `import`.
    kAside,
  };

  /// An older trace of that name is replaced. Errors: the folder is missing or not writable, the
  /// path is a directory, a file that is not a trace, or a trace that is being written.
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& path,
                                                     Mode mode = Mode::kLive);
  virtual ~TraceWriter() = default;

  virtual Result<RunId> BeginRun(const RunInfo& run) = 0;
  /// Replaces what BeginRun stored: a log may contain its rank late.
  virtual Status UpdateRun(RunId id, const RunInfo& run) = 0;

  /// Stores `graph` with its bodies under the name `name` ("step", "joint"); a graph of a run has
  /// many snapshots. What other snapshots of the file hold already costs nothing. A graph that
  /// breaks rules of ir/verify.h (the result of a failed pass) is stored as it is.
  ///
  /// REQUIRES: stable ids are unique in the graph and its bodies.
  virtual Result<SnapshotId> AddSnapshot(RunId run, std::string_view name, const Graph& graph,
                                         std::string_view attributes = {}) = 0;

  /// Stores a graph once more, under another name or in another run: a row, and nothing of the
  /// graph itself.
  virtual Result<SnapshotId> AddSnapshotOf(RunId run, std::string_view name, SnapshotId same,
                                           std::string_view attributes = {}) = 0;
  /// As TraceReader::LoadSnapshot.
  virtual Result<std::unique_ptr<Module>> LoadSnapshot(SnapshotId id) = 0;

  /// Stores `pass` and, before it, `after` as its after snapshot (null: `pass.after` stands), in
  /// one transaction: there is no trace with the one and without the other. Returns the pass with
  /// its id, after snapshot and counts.
  virtual Result<StoredPass> RecordPass(RunId run, PassRecord pass,
                                        const Graph* after = nullptr) = 0;

  virtual Status RecordExecuted(RunId run, const ExecutedRange& range) = 0;

  /// A step, and the fingerprints of the plans that it ran, by graph name. Steps that follow each
  /// other with equal fingerprints become one ExecutedRange.
  struct Executed {
    std::string_view graph;
    Fingerprint fingerprint;
  };
  virtual Status RecordStep(RunId run, const StepRecord& step,
                            std::span<const Executed> executed) = 0;

  virtual Result<ArtifactId> AddArtifact(RunId run, std::string_view name, std::string_view kind,
                                         std::string_view bytes,
                                         std::string_view attributes = {}) = 0;
  /// Adds bytes to the end of an artifact. Content that the trace holds already costs nothing, for
  /// as long as it comes in the same pieces.
  virtual Status AppendArtifact(ArtifactId id, std::string_view bytes) = 0;
  virtual Status AddEvents(RunId run, std::span<const EventRecord> events) = 0;

  /// See store/run_end.h for why it failed or was interrupted. REQUIRES: `status` is not kRunning.
  virtual Status EndRun(RunId run, RunStatus status) = 0;

  /// For a program that outlives its trace: after an error, ends `run` as kFailed, with the error
  /// as the reason, and makes the trace one file, as far as the disk has room. What has none is
  /// left out. No call may follow.
  virtual void EndAfterError(RunId run) = 0;

  /// Makes the trace one durable file (no `-wal` beside it) under its name. No call may follow.
  virtual Status Finish() = 0;

  /// Stable ids below it are taken. Give it to Module::ReserveStableIds of every module whose
  /// graphs go into this trace, before nodes are made.
  virtual uint64_t next_stable_id() const = 0;
  /// Without its attributes.
  virtual const SnapshotInfo& snapshot(SnapshotId id) const = 0;
  virtual const std::string& path() const = 0;
};

}  // namespace strata
