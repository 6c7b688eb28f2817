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
  kRunning = 1,
  kFinished = 2,
  kFailed = 3,
  kInterrupted = 4,  ///< asked to stop; also of a run that did not end, in a trace without a writer
};
std::string_view ToString(RunStatus status);  ///< "running", "finished", "failed", "interrupted"

enum class PassOutcome : uint8_t { kOk = 1, kUnchanged = 2, kFailed = 3 };
std::string_view ToString(PassOutcome outcome);  ///< "ok", "unchanged", "failed"

/// One execution of a pipeline, by one rank or all, or one imported log of one rank.
struct RunInfo {
  RunKind kind = RunKind::kOpt;
  int32_t rank = 0, world = 1;
  /// The graphs are those of all `world` ranks, each the same on every rank that executes it;
  /// `rank` is 0.
  bool is_of_all_ranks = false;
  std::string source;    ///< the log, the model or the REF it started from
  std::string command;   ///< as the user typed it
  std::string pipeline;  ///< passes as text
  std::string config;    ///< the whole configuration, as text
};

/// Whether the graphs of the run are those of this rank.
bool HasRank(const RunInfo& run, int64_t rank);
/// "rank 1 of 4", or of all ranks "ranks 0..3".
std::string RanksText(const RunInfo& run);

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
  /// Operator, arguments, types, module or phase differ, also as a consequence of other changes;
  /// not names, and not placements that only one of both graphs has.
  int64_t changed = 0;
  int64_t moved = 0;  ///< the fewest nodes whose moves explain the new order
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

/// True when the file begins as a trace does; false for anything else, also for no file.
bool LooksLikeTrace(const std::string& path);

}  // namespace strata
