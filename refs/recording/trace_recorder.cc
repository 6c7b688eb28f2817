#include "refs/recording/trace_recorder.h"

#include <algorithm>

#include "ir/verify.h"

namespace strata {
namespace {

PassOutcome OutcomeOf(PassStatus status) {
  switch (status) {
    case PassStatus::kOk:
      return PassOutcome::kOk;
    case PassStatus::kUnchanged:
      return PassOutcome::kUnchanged;
    case PassStatus::kFailed:
      break;
  }
  return PassOutcome::kFailed;
}

}  // namespace

Status TraceRecorder::Begin(std::string_view, const Module& module) {
  first_index_ = next_index_;
  for (GraphId id : module.programs()) {
    const Graph& graph = module.graph(id);
    if (!Differs(graph)) continue;
    STRATA_TRY(last_[id], trace_.AddSnapshot(run_, graph.name_text(), graph));
  }
  return Ok();
}

Status TraceRecorder::Write(const PassRun& run, const Module& module) {
  next_index_ = first_index_ + run.index + 1;
  std::vector<GraphId> changed;
  // A failed run has no fingerprints, and neither has a graph that contains itself.
  const bool has_fingerprints = CheckBodies(module).has_value();
  for (GraphId id : module.programs()) {
    const auto reported = std::ranges::find(run.graphs, id, &GraphChange::graph);
    const bool differs = reported != run.graphs.end()
                             ? reported->changed()
                             : has_fingerprints && Differs(module.graph(id));
    if (differs) changed.push_back(id);
  }
  if (changed.empty()) {
    const std::vector<GraphId> programs = module.programs();
    if (programs.empty()) return Ok();
    return WriteProgram(run, module.graph(programs.front()), false, run.births);
  }
  std::vector<Provenance> births = run.births;
  for (GraphId id : changed) {
    // Provenance belongs to the pass: its first record holds it.
    STRATA_RETURN_IF_ERROR(WriteProgram(run, module.graph(id), true, std::exchange(births, {})));
  }
  return Ok();
}

Status TraceRecorder::WriteProgram(const PassRun& run, const Graph& graph, bool changed,
                                   std::vector<Provenance> births) {
  PassRecord record;
  record.index = first_index_ + run.index;
  record.name = run.name;
  record.options = run.params;
  record.outcome = OutcomeOf(run.status);
  record.wall_ns = run.wall.count();
  record.graph = graph.name_text();
  record.before = record.after = Last(graph.id());
  record.error = run.error;
  record.reproduce = run.reproduce;
  record.births = std::move(births);
  STRATA_TRY(const StoredPass pass,
             trace_.RecordPass(run_, std::move(record), changed ? &graph : nullptr));
  last_[graph.id()] = pass.record.after;
  return Ok();
}

Status TraceRecorder::End(const Module&) {
  return Ok();
}

SnapshotId TraceRecorder::Last(GraphId graph) const {
  const auto found = last_.find(graph);
  return found == last_.end() ? SnapshotId::kNone : found->second;
}

bool TraceRecorder::Differs(const Graph& graph) const {
  const SnapshotId last = Last(graph.id());
  return last == SnapshotId::kNone ||
         trace_.snapshot(last).everything != FingerprintOf(graph, FingerprintScope::kEverything);
}

}  // namespace strata
