#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/fingerprint.h"
#include "ir/module.h"

/// The trace file, `*.strata`: runs with their graphs before and after every pass, what was
/// executed, and whatever else belongs to them. Format: docs/trace_format.md.
namespace strata {

/// Ids of rows of one trace: dense, from 1, in order of writing; 0: absent.
enum class RunId : int64_t { kNone = 0 };
enum class SnapshotId : int64_t { kNone = 0 };
enum class PassId : int64_t { kNone = 0 };
enum class ArtifactId : int64_t { kNone = 0 };

// DO NOT CHANGE THE VALUES of the enums of this file: they are stored.

enum class RunKind : uint8_t {
  kImport = 1,  ///< one log of one rank; nodes of two of its graphs are matched by structure
  kOpt = 2,     ///< passes without training
  kTrain = 3,
};
std::string_view ToString(RunKind kind);  ///< "import", "opt", "train"

enum class RunStatus : uint8_t {
  kRunning = 1,  ///< not ended: still running, or killed
  kFinished = 2,
  kFailed = 3,
};
std::string_view ToString(RunStatus status);  ///< "running", "finished", "failed"

enum class PassOutcome : uint8_t { kOk = 1, kUnchanged = 2, kFailed = 3 };
std::string_view ToString(PassOutcome outcome);  ///< "ok", "unchanged", "failed"

/// One execution of a pipeline, or one imported log of one rank.
struct RunInfo {
  RunKind kind = RunKind::kOpt;
  int32_t rank = 0, world = 1;
  std::string source;    ///< the log, the model or the REF it started from
  std::string command;   ///< as the user typed it
  std::string pipeline;  ///< passes as text
  std::string config;    ///< the whole configuration, as text
};

/// A graph at one point of a run, with the bodies of its higher-order nodes.
struct SnapshotInfo {
  SnapshotId id = SnapshotId::kNone;
  RunId run = RunId::kNone;
  std::string graph;        ///< name of its graph in the run
  Fingerprint fingerprint;  ///< FingerprintScope::kComputation
  Fingerprint everything;   ///< FingerprintScope::kEverything
  int64_t nodes = 0;        ///< printed nodes (Graph::num_printed_nodes), those of bodies included
  std::string attributes;   ///< a JSON object, or empty
};

/// What a pass did to a graph, in printed nodes:
/// nodes(before) + inserted - deleted = nodes(after).
struct ChangeCounts {
  int64_t inserted = 0, deleted = 0;
  int64_t changed = 0;  ///< operator, arguments, types, module or phase differ; not names
  int64_t moved = 0;    ///< the fewest nodes whose moves explain the new order
  friend bool operator==(const ChangeCounts&, const ChangeCounts&) = default;
};

/// One run of one pass over one graph. A pass that changes two graphs has two records of one index.
struct PassRecord {
  int32_t index = 0;          ///< position in the pipeline, from 0
  std::string name, options;  ///< "bucket", "ag=2,mode=fast"
  PassOutcome outcome = PassOutcome::kOk;
  int64_t wall_ns = 0;  ///< of the pass alone; the one thing in a trace that differs between runs
  std::string graph;    ///< name of the graph in the run
  /// Snapshots of that graph; the same one when nothing changed.
  SnapshotId before = SnapshotId::kNone, after = SnapshotId::kNone;
  /// None: counted from the stable ids of both snapshots. Importers, whose ids identify nothing,
  /// must count with the differ.
  std::optional<ChangeCounts> counts;
  std::string error, reproduce;    ///< kFailed: what went wrong, the command that shows it again
  std::vector<Provenance> births;  ///< nodes that the pass made
};

/// Something that a trace carries along: a file of a log, generated code.
struct ArtifactInfo {
  ArtifactId id = ArtifactId::kNone;
  RunId run = RunId::kNone;
  std::string name, kind;
  int64_t bytes = 0;
  std::string attributes;  ///< a JSON object, or empty
};

/// Steps `first_step` … `last_step`, both included, that executed a graph with this fingerprint.
struct ExecutedRange {
  std::string graph;
  int64_t first_step = 0, last_step = 0;
  Fingerprint fingerprint;  ///< FingerprintScope::kComputation, as the plan carries it
};

/// One training step.
struct StepRecord {
  int64_t step = 0;  ///< from 1
  double loss = 0, grad_norm = 0;
  int64_t wall_ns = 0;
};

/// Something that happened at a time: a kernel, a copy, a compile phase.
struct EventRecord {
  std::string kind, name;
  int64_t start_ns = 0, duration_ns = 0;  ///< from the start of the run
  StableId node = StableId::kNone;        ///< that it belongs to
  std::string attributes;                 ///< a JSON object, or empty
};

/// A pass as stored.
struct StoredPass {
  PassId id = PassId::kNone;
  PassRecord record;  ///< `counts` are there, `births` are not: see TraceReader::LoadBirths
};

/// Writes a trace. Every call that stores something is one transaction: when it returned, a kill
/// of the process loses nothing of it, and readers of the file see all of it or nothing. Use from
/// one thread.
///
/// After an error (disk full) the trace holds what earlier calls stored, and further calls fail.
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

  /// REQUIRES: `status` is not kRunning.
  virtual Status EndRun(RunId run, RunStatus status) = 0;

  /// Makes the trace one durable file (no `-wal` beside it) under its name. No call may follow.
  virtual Status Finish() = 0;

  /// Stable ids below it are taken. Give it to Module::ReserveStableIds of every module whose
  /// graphs go into this trace, before nodes are made.
  virtual uint64_t next_stable_id() const = 0;
  /// Without its attributes.
  virtual const SnapshotInfo& snapshot(SnapshotId id) const = 0;
  virtual const std::string& path() const = 0;
};

/// A graph of a run, over time.
struct StoredGraph {
  std::string name;
  std::vector<SnapshotId> snapshots;  ///< in order of writing, not empty; the last is the final one
};

struct StoredRun {
  RunId id = RunId::kNone;
  RunInfo info;
  RunStatus status = RunStatus::kRunning;
  std::vector<StoredGraph> graphs;  ///< in order of first snapshot
  std::vector<StoredPass> passes;   ///< in order of writing
  std::vector<ExecutedRange> executed;
  std::vector<ArtifactInfo> artifacts;

  const StoredGraph* FindGraph(std::string_view name) const;
};

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
  /// ids and metadata. Its fingerprint has been compared with the stored one.
  virtual Result<std::unique_ptr<Module>> LoadSnapshot(SnapshotId id) = 0;
  virtual Result<std::vector<Provenance>> LoadBirths(PassId id) = 0;
  virtual Result<std::string> LoadArtifact(ArtifactId id) = 0;
  virtual Result<std::vector<StepRecord>> LoadSteps(RunId run) = 0;
  virtual Result<std::vector<EventRecord>> LoadEvents(RunId run) = 0;
};

/// The pass after which the graph stood as it was executed: the last one of that graph that changed
/// it to `range.fingerprint`. Null when it was executed as it was before all passes.
const StoredPass* FindExecutedPass(const TraceReader& trace, const StoredRun& run,
                                   const ExecutedRange& range);

/// True when the file begins as a trace does; false for anything else, also for no file.
bool LooksLikeTrace(const std::string& path);

/// What `strata check` finds: damage by table and row. Empty: the trace is sound. Reads everything.
/// Errors: the file cannot be opened as a trace at all.
struct Finding {
  std::string table;  ///< of the file; empty: the file as a whole
  int64_t row = 0;    ///< 0: the table as a whole
  std::string what;
};
Result<std::vector<Finding>> CheckTrace(const std::string& path);

}  // namespace strata
