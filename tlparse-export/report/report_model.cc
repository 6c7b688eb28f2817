#include "tlparse-export/report/report_model.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "diff/diff.h"
#include "ir/text.h"
#include "scene/scene.h"
#include "tlparse-export/report/scene_json.h"

namespace strata {
namespace {

class Maker {
 public:
  Maker(TraceReader& trace, const ReportOptions& options) : trace_(trace), options_(options) {
    model_.title = options.title;
    if (model_.title.empty())
      model_.title = std::filesystem::path(trace.path()).filename().string();
  }

  Result<ReportModel> Run() {
    for (const StoredRun& run : trace_.runs())
      STRATA_RETURN_IF_ERROR(AddRun(run));
    return std::move(model_);
  }

 private:
  Status AddRun(const StoredRun& stored) {
    ReportRun run;
    run.id = static_cast<int64_t>(stored.id);
    run.kind = ToString(stored.info.kind);
    run.status = ToString(stored.status);
    run.source = stored.info.source;
    run.command = stored.info.command;
    run.pipeline = stored.info.pipeline;
    run.rank = stored.info.rank;
    run.world = stored.info.world;
    run.artifacts = stored.artifacts;
    std::set<std::string> seen;  // graphs that a pass shows
    for (const StoredPass& pass : stored.passes) {
      STRATA_RETURN_IF_ERROR(AddPass(stored, pass, run));
      if (run.passes.back().detail >= 0) seen.insert(pass.record.graph);
    }
    for (const StoredGraph& graph : stored.graphs) {
      STRATA_RETURN_IF_ERROR(AddGraph(stored, graph, !seen.contains(graph.name), run));
    }
    for (const ExecutedRange& range : stored.executed) {
      run.executed.push_back(range);
      const StoredPass* pass = FindExecutedPass(trace_, stored, range);
      run.executed_selectors.push_back(
          pass == nullptr ? fmt::format("run={},graph={}", run.id, SelectorValue(range.graph))
                          : PassSelector(stored, *pass));
    }
    STRATA_TRY(run.steps, trace_.LoadSteps(stored.id));
    model_.runs.push_back(std::move(run));
    return Ok();
  }

  static std::string PassSelector(const StoredRun& run, const StoredPass& pass) {
    return fmt::format("run={},graph={},pass={}", static_cast<int64_t>(run.id),
                       SelectorValue(pass.record.graph), pass.record.index);
  }

  ReportMoment Moment(SnapshotId id) const {
    const SnapshotInfo* info = trace_.FindSnapshot(id);
    if (info == nullptr) return {};
    return {.nodes = info->nodes, .fingerprint = ToString(info->fingerprint)};
  }

  Status AddPass(const StoredRun& stored, const StoredPass& pass, ReportRun& run) {
    const PassRecord& record = pass.record;
    ReportPass shown;
    shown.index = record.index;
    shown.name = record.name;
    shown.options = record.options;
    shown.graph = record.graph;
    shown.status = ToString(record.outcome);
    shown.wall_ns = record.wall_ns;
    shown.before = Moment(record.before);
    shown.after = Moment(record.after);
    if (record.counts) shown.counts = *record.counts;
    shown.error = record.error;
    shown.reproduce = record.reproduce;
    shown.selector = PassSelector(stored, pass);
    if (record.before != SnapshotId::kNone && record.after != SnapshotId::kNone &&
        record.before != record.after) {
      STRATA_RETURN_IF_ERROR(AddDiff(stored, record, shown));
    }
    run.passes.push_back(std::move(shown));
    return Ok();
  }

  Status AddDiff(const StoredRun& stored, const PassRecord& record, ReportPass& shown) {
    STRATA_TRY(const std::unique_ptr<Module> before, trace_.LoadSnapshot(record.before));
    STRATA_TRY(const std::unique_ptr<Module> after, trace_.LoadSnapshot(record.after));
    DiffOptions options;
    options.stable_ids = stored.info.kind != RunKind::kImport;
    STRATA_TRY(const GraphDiff diff, Diff(before->graph({0}), after->graph({0}), options));
    const DiffSummary& summary = diff.summary;
    shown.counts = {.inserted = summary.inserted,
                    .deleted = summary.deleted,
                    .changed = summary.changed,
                    .moved = summary.moved};
    shown.derived = summary.derived;
    if (!diff.Equal()) shown.detail = AddDetail(fmt::format("pass {}", record.name), diff);
    return Ok();
  }

  Status AddGraph(const StoredRun& stored, const StoredGraph& graph, bool draw, ReportRun& run) {
    ReportGraph shown;
    shown.name = graph.name;
    shown.last = Moment(graph.snapshots.back());
    shown.selector =
        fmt::format("run={},graph={}", static_cast<int64_t>(stored.id), SelectorValue(graph.name));
    if (draw) {
      STRATA_TRY(const std::unique_ptr<Module> module, trace_.LoadSnapshot(graph.snapshots.back()));
      DiffOptions options;
      options.stable_ids = true;
      STRATA_TRY(const GraphDiff diff, Diff(module->graph({0}), module->graph({0}), options));
      shown.detail = AddDetail(fmt::format("graph {}", graph.name), diff);
    }
    run.graphs.push_back(std::move(shown));
    return Ok();
  }

  int32_t AddDetail(std::string title, const GraphDiff& diff) {
    ReportDetail detail{std::move(title), SceneJson(diff, MakeScene(diff))};
    if (detail_bytes_ + detail.json.size() > options_.max_detail_bytes) {
      detail.json.clear();
    } else {
      detail_bytes_ += detail.json.size();
    }
    model_.details.push_back(std::move(detail));
    return static_cast<int32_t>(model_.details.size()) - 1;
  }

  TraceReader& trace_;
  const ReportOptions& options_;
  ReportModel model_;
  size_t detail_bytes_ = 0;
};

}  // namespace

Result<ReportModel> MakeReport(TraceReader& trace, const ReportOptions& options) {
  return Maker(trace, options).Run();
}

}  // namespace strata
