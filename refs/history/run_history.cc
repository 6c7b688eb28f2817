#include "refs/history/run_history.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/selector.h"
#include "diff/code/code_diff.h"
#include "diff/graph/hash.h"
#include "refs/history/generated_code.h"
#include "refs/history/recent_graphs.h"
#include "refs/history/step_refs.h"
#include "tlparse-export/torch_trace/export/stored_records.h"
#include "tlparse-export/torch_trace/read/log_graphs.h"
#include "tlparse-export/torch_trace/read/torch_logs.h"

namespace strata {
namespace {

/// Sets the records that the graphs of an imported run came with; none when it was not a log.
Status AddRecords(TraceReader& trace, const StoredRun& run, History& history) {
  STRATA_TRY(const std::vector<StoredRecord> stored, ReadGraphRecords(trace, run));
  if (stored.empty()) return Ok();
  history.is_excerpt = std::ranges::any_of(
      stored, [](const StoredRecord& record) { return IsOfTorchLogs(record.envelope); });
  std::map<SnapshotId, const StoredRecord*> first;
  for (const StoredRecord& record : stored)
    first.try_emplace(record.snapshot, &record);
  for (const StoredGraph& graph : run.graphs) {
    const auto found = first.find(graph.snapshots[0]);
    history.records.push_back(found == first.end()
                                  ? GraphRecord{}
                                  : GraphRecord{found->second->compile, found->second->name,
                                                std::string(PassEndedBy(found->second->name))});
  }
  return Ok();
}

/// The snapshots of all graphs of a run, in the order in which they were recorded.
std::vector<SnapshotId> SnapshotsOf(const StoredRun& run) {
  std::vector<SnapshotId> snapshots;
  for (const StoredGraph& graph : run.graphs)
    snapshots.insert(snapshots.end(), graph.snapshots.begin(), graph.snapshots.end());
  std::ranges::sort(snapshots);
  return snapshots;
}

int32_t GraphIndex(const StoredRun& run, std::string_view name) {
  const auto found = std::ranges::find(run.graphs, name, &StoredGraph::name);
  return static_cast<int32_t>(found - run.graphs.begin());
}

/// The selector of the first pass that `snapshot` stands before or after, or "".
std::string PassSelector(const StoredRun& run, SnapshotId snapshot) {
  for (const StoredPass& pass : run.passes) {
    if (pass.record.before == snapshot) return fmt::format(",pass={}:before", pass.record.index);
    if (pass.record.after == snapshot) return fmt::format(",pass={}:after", pass.record.index);
  }
  return "";
}

/// Puts the passes of a run, and the snapshots that no pass made, in order of time.
class StepList {
 public:
  StepList(const StoredRun& run, const std::vector<SnapshotId>& snapshots, History& history)
      : run_(run), snapshots_(snapshots), history_(history), last_(run.graphs.size(), -1) {
    for (size_t i = 0; i < snapshots.size(); ++i)
      index_of_[snapshots[i]] = static_cast<int32_t>(i);
    for (const StoredPass& pass : run.passes) {
      if (pass.record.after != pass.record.before) made_by_pass_.insert(pass.record.after);
    }
  }

  void AddAll() {
    for (const StoredPass& pass : run_.passes)
      AddPass(pass);
    if (!snapshots_.empty()) AddArrivalsUpTo(snapshots_.back());
  }

 private:
  /// Adds a pass after the snapshots that were recorded before it ended. A pass without snapshots
  /// (a run of a module without graphs) is not a step.
  void AddPass(const StoredPass& stored) {
    const PassRecord& pass = stored.record;
    const SnapshotId after = pass.after == SnapshotId::kNone ? pass.before : pass.after;
    if (after == SnapshotId::kNone) return;
    AddArrivalsUpTo(std::max(pass.before, after));
    HistoryStep step;
    step.graph = GraphIndex(run_, pass.graph);
    step.before = pass.before == SnapshotId::kNone ? -1 : index_of_.at(pass.before);
    step.after = index_of_.at(after);
    step.pass = pass.name;
    step.options = pass.options;
    step.pass_index = pass.index;
    step.failed = pass.outcome == PassOutcome::kFailed;
    step.id = static_cast<int64_t>(stored.id);
    last_[static_cast<size_t>(step.graph)] = step.after;
    history_.steps.push_back(std::move(step));
  }

  /// Adds the snapshots that no pass made, from the next one through `end`.
  void AddArrivalsUpTo(SnapshotId end) {
    for (; next_ < snapshots_.size() && snapshots_[next_] <= end; ++next_) {
      if (!made_by_pass_.contains(snapshots_[next_])) AddArrival(static_cast<int32_t>(next_));
    }
  }

  /// Adds a graph that appears or changes between passes; a snapshot equal to the last is skipped.
  void AddArrival(int32_t index) {
    HistoryStep step;
    step.graph = history_.snapshot(index).graph;
    step.before = std::exchange(last_[static_cast<size_t>(step.graph)], index);
    step.after = index;
    const bool is_same = step.before >= 0 &&
                         history_.snapshot(step.before).content == history_.snapshot(index).content;
    if (!is_same) history_.steps.push_back(std::move(step));
  }

  const StoredRun& run_;
  const std::vector<SnapshotId>& snapshots_;
  History& history_;
  std::map<SnapshotId, int32_t> index_of_;
  std::set<SnapshotId> made_by_pass_;
  std::vector<int32_t> last_;  // by graph: its last snapshot so far, or -1
  size_t next_ = 0;            // the first of `snapshots_` that has not arrived
};

auto SnapshotLoader(SnapshotSource source, std::vector<SnapshotId> snapshots) {
  return [source = std::move(source), snapshots = std::move(snapshots),
          recent = std::make_shared<RecentGraphs>()](int32_t index) -> Result<LoadedGraph> {
    const SnapshotId id = snapshots[static_cast<size_t>(index)];
    // By id: snapshots of equal content may have different stable ids.
    return recent->Get(fmt::format("{}", static_cast<int64_t>(id)), [&]() -> Result<LoadedGraph> {
      STRATA_TRY(std::shared_ptr<const Module> module, source(id));
      return LoadedGraph{std::move(module), GraphId{0}};
    });
  };
}

/// Provenance of a pass. For a pass over several graphs, its first record holds all of it.
auto ProvenanceLoader(const std::shared_ptr<TraceReader>& trace, RunId run) {
  return [trace, run](const HistoryStep& step) -> Result<std::vector<Provenance>> {
    std::vector<Provenance> provenance;
    for (const StoredPass& pass : trace->FindRun(run)->passes) {
      if (pass.record.index != step.pass_index) continue;
      STRATA_TRY(const std::vector<Provenance> some, trace->LoadBirths(pass.id));
      provenance.insert(provenance.end(), some.begin(), some.end());
    }
    return provenance;
  };
}

/// An artifact of generated code, and the one that maps its kernels to nodes.
struct StoredCode {
  ArtifactId artifact, mapping = ArtifactId::kNone;
};

Result<std::vector<StoredCode>> AddCode(TraceReader& trace, const StoredRun& run,
                                        History& history) {
  std::vector<StoredCode> stored;
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (MapsKernels(artifact.name)) {
      // It comes behind the code that it belongs to.
      const std::string compile = CompileOf(artifact);
      for (size_t i = 0; i < stored.size(); ++i) {
        const bool fits =
            stored[i].mapping == ArtifactId::kNone && history.code[i].compilation == compile;
        if (fits) stored[i].mapping = artifact.id;
      }
    }
    if (!IsGeneratedCode(artifact.name)) continue;
    STRATA_TRY(const std::string text, trace.LoadArtifact(artifact.id));
    history.code.push_back({CompileOf(artifact), NameOfCode(artifact.name, text),
                            fmt::format("{:x}-{}", HashText(text), text.size()),
                            AotIdOfCode(text)});
    stored.push_back({artifact.id});
  }
  return stored;
}

auto CodeLoader(const std::shared_ptr<TraceReader>& trace, std::vector<StoredCode> stored) {
  return [trace, stored = std::move(stored)](int32_t index) -> Result<CodeText> {
    const StoredCode& at = stored[static_cast<size_t>(index)];
    CodeText code;
    STRATA_TRY(code.text, trace->LoadArtifact(at.artifact));
    if (at.mapping == ArtifactId::kNone) return code;
    STRATA_TRY(const std::string mapping, trace->LoadArtifact(at.mapping));
    code.calls = ReadKernelCalls(mapping);
    return code;
  };
}

}  // namespace

Result<History> HistoryOfRun(const std::shared_ptr<TraceReader>& trace, const StoredRun& run,
                             const std::string& file, SnapshotSource source) {
  if (!source) {
    source = [trace](SnapshotId id) -> Result<std::shared_ptr<const Module>> {
      STRATA_TRY(std::shared_ptr<const Module> module, trace->LoadSnapshot(id));
      return module;
    };
  }
  History history;
  history.ref = fmt::format("{}#run={}", file, static_cast<int64_t>(run.id));
  history.rank = run.info.rank;
  if (run.info.is_of_all_ranks) history.num_ranks = run.info.world;
  history.stable_ids = run.info.kind != RunKind::kImport;
  STRATA_RETURN_IF_ERROR(AddRecords(*trace, run, history));
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (IsCacheHit(artifact.name)) history.cached.insert(CompileOf(artifact));
  }
  for (const StoredGraph& graph : run.graphs)
    history.graphs.push_back(graph.name);
  std::vector<SnapshotId> snapshots = SnapshotsOf(run);
  for (const SnapshotId id : snapshots) {
    const SnapshotInfo& info = *trace->FindSnapshot(id);
    history.snapshots.push_back({GraphIndex(run, info.graph),
                                 fmt::format("{},graph={}{}", history.ref,
                                             SelectorValue(info.graph), PassSelector(run, id)),
                                 ToString(info.everything)});
  }
  StepList(run, snapshots, history).AddAll();
  STRATA_TRY(std::vector<StoredCode> code, AddCode(*trace, run, history));
  history.load_code = CodeLoader(trace, std::move(code));
  SetStepRefs(history);
  history.load = SnapshotLoader(std::move(source), std::move(snapshots));
  history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  if (history.stable_ids) history.provenance = ProvenanceLoader(trace, run.id);
  return history;
}

}  // namespace strata
