#include "store/merge.h"

#include <map>
#include <memory>

namespace strata {
namespace {

class RunCopier {
 public:
  RunCopier(TraceReader& from, const StoredRun& run, TraceWriter& to)
      : from_(from), run_(run), to_(to) {}

  Result<RunId> Copy(const RunInfo& info) {
    STRATA_TRY(id_, to_.BeginRun(info));
    STRATA_RETURN_IF_ERROR(CopySnapshots());
    STRATA_RETURN_IF_ERROR(CopyPasses());
    for (const ExecutedRange& range : run_.executed)
      STRATA_RETURN_IF_ERROR(to_.RecordExecuted(id_, range));
    STRATA_TRY(const std::vector<StepRecord> steps, from_.LoadSteps(run_.id));
    for (const StepRecord& step : steps)
      STRATA_RETURN_IF_ERROR(to_.RecordStep(id_, step, {}));
    for (const ArtifactInfo& artifact : run_.artifacts) {
      STRATA_TRY(const std::string bytes, from_.LoadArtifact(artifact.id));
      STRATA_TRY(const ArtifactId copy,
                 to_.AddArtifact(id_, artifact.name, artifact.kind, bytes, artifact.attributes));
      static_cast<void>(copy);
    }
    STRATA_TRY(const std::vector<EventRecord> events, from_.LoadEvents(run_.id));
    if (!events.empty()) STRATA_RETURN_IF_ERROR(to_.AddEvents(id_, events));
    const bool is_running = run_.status == RunStatus::kRunning;
    STRATA_RETURN_IF_ERROR(to_.EndRun(id_, is_running ? RunStatus::kInterrupted : run_.status));
    return id_;
  }

 private:
  /// In order of writing, which is the order of their ids.
  Status CopySnapshots() {
    for (const StoredGraph& graph : run_.graphs) {
      for (SnapshotId id : graph.snapshots)
        copies_.emplace(id, SnapshotId::kNone);
    }
    for (auto& [id, copy] : copies_) {
      const SnapshotInfo& info = *from_.FindSnapshot(id);
      STRATA_TRY(const std::unique_ptr<Module> module, from_.LoadSnapshot(id));
      STRATA_TRY(copy, to_.AddSnapshot(id_, info.graph, module->graph({0}), info.attributes));
    }
    return Ok();
  }

  Status CopyPasses() {
    const auto copy_of = [&](SnapshotId id) {
      return id == SnapshotId::kNone ? id : copies_.at(id);
    };
    for (const StoredPass& stored : run_.passes) {
      PassRecord pass = stored.record;
      pass.before = copy_of(pass.before);
      pass.after = copy_of(pass.after);
      STRATA_TRY(pass.births, from_.LoadBirths(stored.id));
      STRATA_TRY(const StoredPass copy, to_.RecordPass(id_, std::move(pass)));
      static_cast<void>(copy);
    }
    return Ok();
  }

  TraceReader& from_;
  const StoredRun& run_;
  TraceWriter& to_;
  RunId id_ = RunId::kNone;
  std::map<SnapshotId, SnapshotId> copies_;  // by id in `from_`
};

}  // namespace

Result<RunId> CopyRun(TraceReader& from, const StoredRun& run, const RunInfo& info,
                      TraceWriter& to) {
  return RunCopier(from, run, to).Copy(info);
}

}  // namespace strata
