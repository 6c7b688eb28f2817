#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "refs/source_trace.h"
#include "scene/scene.h"
#include "store/node_statistics.h"
#include "store/proofs.h"
#include "store/trace_reader.h"

namespace strata::viewer {

/// What the runs of nodes took and gave, by stable id; times are those of one step.
using Measures = std::unordered_map<uint64_t, NodeStatistics>;
std::shared_ptr<const Measures> MakeMeasures(const std::vector<StatisticsTable>& tables);

/// An index into Contents::subjects.
using SubjectId = Id<struct SubjectTag>;

/// What the viewer shows at a time: a pass with its two graphs, or a graph by itself.
struct Subject {
  enum class Kind : uint8_t { kPass, kGraph };

  Kind kind = Kind::kPass;
  RunId run = RunId::kNone;
  int32_t rank = 0;
  std::string graph;
  std::string name, options;  ///< of the pass, or of the graph
  int32_t index = -1;         ///< of the pass in its pipeline
  PassId pass = PassId::kNone;
  SnapshotId before = SnapshotId::kNone;  ///< none: the pass made the graph
  SnapshotId after = SnapshotId::kNone;   ///< the same as before: nothing changed
  SceneCounts counts;  ///< as recorded: derived changes are changes; `nodes` of the graph after
  int64_t nodes_before = 0;
  std::string fingerprint;  ///< of the graph after
  bool stable_ids = false;  ///< nodes of both graphs are joined by their stable ids
  bool failed = false;
  double ms = 0;
  std::string error, reproduce;    ///< of a failed pass
  std::optional<PassProof> proof;  ///< recorded of the pass
  std::string selector;            ///< "run=1,graph=step,pass=3"

  bool changed() const { return before != after && !failed; }
  /// "#3 dce", or the name of the graph.
  std::string Title() const;
  /// The verdict of the proof and what of the graph it is about; "": none is recorded.
  std::string ProofText() const;
};

/// A run, as the passes pane lists it.
struct RunEntry {
  RunId id = RunId::kNone;
  std::string kind, status;  ///< "train", "running"
  std::string source, command, pipeline;
  int32_t rank = 0, world = 1;
  bool is_of_all_ranks = false;
  std::string ranks;  ///< "rank 1 of 4", "ranks 0..3"
  IdRange<SubjectId> subjects = Ids<SubjectId>(0);
  std::vector<std::string> graphs;
  int64_t last_step = 0;      ///< of training; 0: none
  int64_t planned_steps = 0;  ///< that it is to do; 0: not known
  double loss = 0;            ///< of the last step
  /// All steps of training, in order; never null.
  std::shared_ptr<const std::vector<StepRecord>> steps;

  bool running() const { return status == "running"; }
};

/// What a trace holds at one time. Does not change.
struct Contents {
  std::vector<RunEntry> runs;
  IdVector<SubjectId, Subject>
      subjects;  ///< run by run: passes in order, then graphs without passes

  /// The subject that a selector of a REF or a link names, leaving out parts as REFs may, if
  /// there is one.
  SubjectId Find(std::string_view selector) const;
  const RunEntry* RunOf(const Subject& subject) const;
  /// "rank 1, optimizer": where a subject is, as several may have its title; "": in the only run.
  std::string PlaceOf(const Subject& subject) const;
};

/// An open file: a trace, or what was imported from a log, a folder of logs or an FX text. Usable
/// from several threads.
class Document {
 public:
  /// Imports what is not a trace; `warn` receives the import's warnings, `on_progress` is that of
  /// ImportOptions.
  static Result<std::shared_ptr<Document>> Open(const std::string& file, const WarningSink& warn,
                                                std::function<Status(double)> on_progress = {});

  const std::string& file() const { return file_; }  ///< as the user named it
  const std::string& trace_path() const { return source_.path(); }
  bool is_imported() const { return source_.is_imported(); }

  /// Of the time when it was read last. Waits for what is being loaded.
  std::shared_ptr<const Contents> contents() const;
  /// Sees what a live run added. Null when there was nothing.
  Result<std::shared_ptr<const Contents>> Refresh();

  /// A graph. The last few are kept; one that is in use is shared.
  Result<std::shared_ptr<const Module>> Load(SnapshotId id);
  Result<std::vector<Provenance>> LoadProvenance(PassId id);
  /// What nodes of a run took and gave; empty if nothing was measured. Those of one run are kept.
  Result<std::shared_ptr<const Measures>> LoadMeasures(RunId run);

 private:
  explicit Document(SourceTrace source) : source_(std::move(source)) {}
  /// Rebuilds `contents_`. REQUIRES: the caller holds `mutex_`, or no other thread knows this.
  Status ReadContents();

  std::string file_;
  SourceTrace source_;
  mutable std::mutex mutex_;
  std::unique_ptr<TraceReader> reader_;
  std::shared_ptr<const Contents> contents_;
  std::array<std::pair<SnapshotId, std::shared_ptr<const Module>>, 4> loaded_;
  size_t next_loaded_ = 0;
  std::map<SnapshotId, std::weak_ptr<const Module>> in_use_;
  RunId measured_run_ = RunId::kNone;
  std::shared_ptr<const Measures> measures_;  // of that run
};

}  // namespace strata::viewer
