#include "viewer/compare/node_histories.h"

#include <algorithm>

#include "refs/history/run_history.h"

namespace strata::viewer {
namespace {

/// The snapshot of a subject in its history; -1: the history does not have it.
int32_t SnapshotOf(const History& history, const Subject& subject, bool before) {
  int32_t last = -1;
  for (const HistoryStep& step : history.steps) {
    if (history.GraphOf(step) != subject.graph) continue;
    last = step.after;
    if (subject.kind == Subject::Kind::kPass && step.pass_index == subject.index &&
        step.pass == subject.name)
      return before && step.before >= 0 ? step.before : step.after;
  }
  return subject.kind == Subject::Kind::kGraph ? last : -1;
}

}  // namespace

Result<NodeHistories::Run*> NodeHistories::Load(RunId id) {
  if (!reader_) {
    STRATA_TRY(std::unique_ptr<TraceReader> reader, TraceReader::Open(document_->trace_path()));
    reader_ = std::move(reader);
  }
  Run& run = runs_[id];
  if (!run.history) {
    const StoredRun* stored = reader_->FindRun(id);
    if (stored == nullptr)
      return Error(ErrorCode::kNotFound, "no such run: {}: read the file again", document_->file());
    STRATA_TRY(History history, HistoryOfRun(reader_, *stored, document_->file(),
                                             [document = document_](SnapshotId snapshot) {
                                               return document->Load(snapshot);
                                             }));
    run.history = std::make_unique<History>(std::move(history));
  }
  return &run;
}

Result<Blame> NodeHistories::Of(const Subject& subject, bool before, const std::string& node) {
  const std::scoped_lock lock(mutex_);
  STRATA_TRY(Run* const run, Load(subject.run));
  const int32_t snapshot = SnapshotOf(*run->history, subject, before);
  if (snapshot < 0)
    return Error(ErrorCode::kNotFound, "the history lacks {}: {}: read the file again",
                 subject.Title(), document_->file());
  const int32_t graph = run->history->snapshot(snapshot).graph;
  auto known = run->blamers.find(graph);
  if (known == run->blamers.end()) {
    STRATA_TRY(Blamer blamer, Blamer::Make(*run->history, graph));
    known = run->blamers.emplace(graph, std::move(blamer)).first;
  }
  return known->second.Follow(snapshot, node);
}

}  // namespace strata::viewer
