#include "tlparse-export/report/diff_report.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/selector.h"
#include "base/shell.h"
#include "diff/diff.h"
#include "diff/history/history_code.h"
#include "ir/fingerprint.h"
#include "tlparse-export/report/causes.h"
#include "tlparse-export/report/report_parts.h"

namespace strata {
namespace {

/// The names of the files, with selectors where the files have one name; the whole REFs when these
/// are the same, too.
std::pair<std::string, std::string> ShortNames(std::string_view before, std::string_view after) {
  const auto file = [](std::string_view ref) { return ref.substr(0, ref.find('#')); };
  const auto name = [&](std::string_view ref) {
    const std::string_view path = file(ref);
    return std::string(path.substr(path.rfind('/') + 1));
  };
  if (name(before) != name(after)) return {name(before), name(after)};
  const auto selected = [&](std::string_view ref) {
    return name(ref) + std::string(ref.substr(file(ref).size()));
  };
  if (selected(before) != selected(after)) return {selected(before), selected(after)};
  return {std::string(before), std::string(after)};
}

ReportSnapshot SnapshotOf(const Graph& graph, ReportParts& parts) {
  ReportSnapshot snapshot = {.nodes = Listing(graph).size(),
                             .fingerprint = ToString(FingerprintOf(graph))};
  parts.Fill(parts.AddFacts(graph), snapshot);
  return snapshot;
}

/// Puts differences of two sides together as the passes of one run.
class PairReport {
 public:
  PairReport(std::string_view before_ref, std::string_view after_ref, std::string_view command) {
    const auto [before, after] = ShortNames(before_ref, after_ref);
    model_.title = fmt::format("{} → {}", before, after);
    run_.id = 1;
    run_.kind = "diff";
    run_.status = "finished";
    run_.source = fmt::format("{} → {}", before_ref, after_ref);
    run_.command =
        fmt::format("strata {} {} {}", command, ShellWord(before_ref), ShellWord(after_ref));
  }

  ReportSnapshot Snapshot(const Graph& graph) { return SnapshotOf(graph, parts_); }

  /// A row that shows no difference. Returns its pass, to be filled in.
  ReportPass& AddRow(std::string_view name, std::string_view options, std::string_view graph) {
    ReportPass pass;
    pass.index = static_cast<int32_t>(run_.passes.size());
    pass.name = name;
    pass.options = options;
    pass.graph = graph;
    pass.status = "unchanged";
    pass.selector = fmt::format("run=1,graph={},pass={}", SelectorValue(graph), pass.index);
    run_.passes.push_back(std::move(pass));
    return run_.passes.back();
  }

  void AddCode(ReportCode code) { model_.code.push_back(std::move(code)); }

  Status AddDiff(const GraphDiff& diff, const CostComparison& costs, ReportPass& pass) {
    const DiffSummary& summary = diff.summary;
    if (!diff.Equal()) pass.status = "ok";
    pass.before = Snapshot(diff.before.root());
    pass.after = Snapshot(diff.after.root());
    pass.counts = {.inserted = summary.inserted,
                   .deleted = summary.deleted,
                   .changed = summary.changed,
                   .moved = summary.moved};
    pass.derived = summary.derived;
    pass.causes = CausesOf(diff);
    STRATA_TRY(pass.detail, parts_.AddScene(pass.name, diff, {.costs = &costs}));
    return Ok();
  }

  Result<ReportModel> Finish() {
    std::map<std::string, ReportSnapshot> last;  // by graph
    for (const ReportPass& pass : run_.passes)
      last[pass.graph] = pass.after;
    for (const auto& [name, snapshot] : last) {
      ReportGraph graph;
      graph.name = name;
      graph.last = snapshot;
      run_.graphs.push_back(std::move(graph));
    }
    model_.runs.push_back(std::move(run_));
    STRATA_RETURN_IF_ERROR(parts_.Finish(ReportOptions().max_bytes, model_));
    return std::move(model_);
  }

 private:
  ReportModel model_;
  ReportRun run_;
  ReportParts parts_;
};

/// Adds the rows of two runs.
class RunPair {
 public:
  RunPair(const History& before, const History& after, const CostsOfPair& costs)
      : before_(before), after_(after), costs_(costs), report_(before.ref, after.ref, "report") {}

  Result<ReportModel> Run() {
    for (const StepPair& pair : AlignSteps(before_, after_)) {
      if (pair.a >= 0 && pair.b >= 0) {
        STRATA_RETURN_IF_ERROR(AddPair(before_.steps[static_cast<size_t>(pair.a)],
                                       after_.steps[static_cast<size_t>(pair.b)]));
      } else {
        const bool in_before = pair.a >= 0;
        const History& history = in_before ? before_ : after_;
        const HistoryStep& step = history.steps[static_cast<size_t>(in_before ? pair.a : pair.b)];
        STRATA_RETURN_IF_ERROR(AddLonely(history, step));
      }
    }
    STRATA_RETURN_IF_ERROR(AddCode());
    return report_.Finish();
  }

 private:
  Status AddCode() {
    STRATA_TRY(const std::vector<CodeDifference> differences, DiffGeneratedCode(before_, after_));
    for (const CodeDifference& difference : differences) {
      ReportCode code;
      code.title =
          fmt::format("{}: {}", difference.label, DescribeCode(difference, before_, after_));
      for (const KernelDiff& kernel : difference.kernels) {
        code.text +=
            fmt::format("{}\n{}\n\n", DescribeKernel(kernel), fmt::join(kernel.lines, "\n"));
      }
      report_.AddCode(std::move(code));
    }
    return Ok();
  }

  static std::string_view NameOf(const HistoryStep& step) {
    if (!step.pass.empty()) return step.pass;
    return step.before < 0 ? "initial" : "between passes";
  }

  Result<ReportSnapshot> Snapshot(const History& history, int32_t index) {
    const std::string& content = history.snapshot(index).content;
    if (const auto known = snapshots_.find(content); known != snapshots_.end())
      return known->second;
    STRATA_TRY(const LoadedGraph graph, history.load(index));
    return snapshots_[content] = report_.Snapshot(graph.graph());
  }

  Status AddPair(const HistoryStep& a, const HistoryStep& b) {
    ReportPass& pass = report_.AddRow(NameOf(b), b.options, after_.GraphOf(b));
    if (before_.snapshot(a.after).content == after_.snapshot(b.after).content) {
      STRATA_TRY(pass.before, Snapshot(before_, a.after));
      pass.after = pass.before;
      return Ok();
    }
    STRATA_TRY(const LoadedGraph before, before_.load(a.after));
    STRATA_TRY(const LoadedGraph after, after_.load(b.after));
    STRATA_TRY(const GraphDiff diff, Diff(before.graph(), after.graph()));
    if (!costs_) return report_.AddDiff(diff, ShapeCosts(diff), pass);
    STRATA_TRY(const CostComparison costs, costs_(diff, a.after, b.after));
    return report_.AddDiff(diff, costs, pass);
  }

  Status AddLonely(const History& history, const HistoryStep& step) {
    ReportPass& pass = report_.AddRow(fmt::format("{} (only in {})", NameOf(step), history.ref),
                                      step.options, history.GraphOf(step));
    STRATA_TRY(pass.after, Snapshot(history, step.after));
    pass.before = pass.after;
    return Ok();
  }

  const History& before_;
  const History& after_;
  const CostsOfPair& costs_;
  PairReport report_;
  std::map<std::string, ReportSnapshot> snapshots_;  // by content
};

}  // namespace

Result<ReportModel> DiffReport(const GraphDiff& diff, std::string_view before_ref,
                               std::string_view after_ref, std::string_view name,
                               const CostComparison* costs) {
  PairReport report(before_ref, after_ref, "diff");
  const std::string options = fmt::format("{} {}", before_ref, after_ref);
  ReportPass& pass = report.AddRow(name, options, diff.after.root().name_text());
  STRATA_RETURN_IF_ERROR(report.AddDiff(diff, costs == nullptr ? ShapeCosts(diff) : *costs, pass));
  return report.Finish();
}

Result<ReportModel> GraphReport(const Graph& graph, std::string_view ref) {
  ReportModel model;
  ReportParts parts;
  model.title = ShortNames(ref, "").first;
  ReportRun run;
  run.id = 1;
  run.kind = "graph";
  run.status = "finished";
  run.source = ref;
  run.command = fmt::format("strata report {}", ShellWord(ref));
  ReportGraph shown;
  shown.name = graph.name_text();
  shown.last = SnapshotOf(graph, parts);
  shown.selector = fmt::format("run=1,graph={}", SelectorValue(shown.name));
  DiffOptions options;
  options.stable_ids = true;
  STRATA_TRY(const GraphDiff diff, Diff(graph, graph, options));
  STRATA_TRY(shown.detail, parts.AddScene(fmt::format("graph {}", shown.name), diff, {}));
  run.graphs.push_back(std::move(shown));
  model.runs.push_back(std::move(run));
  STRATA_RETURN_IF_ERROR(parts.Finish(ReportOptions().max_bytes, model));
  return model;
}

Result<ReportModel> RunsReport(const History& before, const History& after,
                               const CostsOfPair& costs) {
  return RunPair(before, after, costs).Run();
}

}  // namespace strata
