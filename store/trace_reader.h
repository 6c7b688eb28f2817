#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/trace.h"

namespace strata {

/// Reads a trace, also one that another process is writing, also in a folder where nothing may be
/// written. Everything read is verified against its checksums: an error of code kCorrupt names
/// table and row. Use from one thread; several readers of one file are fine.
class TraceReader {
 public:
  /// Errors: no such file, a directory, not a trace, written by a newer Strata, damaged.
  static Result<std::unique_ptr<TraceReader>> Open(const std::string& path);
  virtual ~TraceReader() = default;

  /// What the file held at Open or at the last Refresh. References stay valid until Refresh.
  virtual const std::vector<StoredRun>& runs() const = 0;
  virtual const StoredRun* FindRun(RunId id) const = 0;
  virtual const SnapshotInfo* FindSnapshot(SnapshotId id) const = 0;
  virtual size_t num_snapshots() const = 0;
  virtual uint64_t next_stable_id() const = 0;
  virtual const std::string& path() const = 0;

  /// Sees what a live run added since. True when there was something.
  virtual Result<bool> Refresh() = 0;

  /// The graph as it was stored, as graph 0 of a module of its own, with its bodies, names, stable
  /// ids and metadata. Its fingerprint has been compared with the stored one. `kNone`: a graph
  /// without nodes, as it was before the pass that made it.
  virtual Result<std::unique_ptr<Module>> LoadSnapshot(SnapshotId id) = 0;
  virtual Result<std::vector<Provenance>> LoadBirths(PassId id) = 0;
  virtual Result<std::string> LoadArtifact(ArtifactId id) = 0;
  virtual Result<std::vector<StepRecord>> LoadSteps(RunId run) = 0;
  virtual Result<std::vector<EventRecord>> LoadEvents(RunId run) = 0;
};

/// The pass after which the graph stood as it was executed: the last one of that graph that changed
/// it to `range.fingerprint`. Null when it was executed as it was before all passes, or when no
/// recorded graph has this fingerprint.
const StoredPass* FindExecutedPass(const TraceReader& trace, const StoredRun& run,
                                   const ExecutedRange& range);

/// Whether a snapshot of the range's graph has the fingerprint that was executed.
bool IsExecutedRecorded(const TraceReader& trace, const StoredRun& run, const ExecutedRange& range);

}  // namespace strata
