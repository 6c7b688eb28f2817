#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "cli/core/flags.h"
#include "diff/diff.h"
#include "ir/text/native_text.h"
#include "passes/cleanup/canonicalize.h"
#include "refs/ref.h"
#include "scene/lane_layouts.h"
#include "scene/scene.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tlparse-export/report/diff_report.h"
#include "tlparse-export/report/report_model.h"
#include "tlparse-export/report/scene_json.h"

namespace strata::cli {
namespace {

constexpr int kReportRuns = 5;

/// How both ways of placing the nodes of open slabs do: counts over the distinct lanes that both
/// placed, without a limit to what `dot` is asked for, and what the choice between them makes.
Status MeasureSlabs(std::string_view name, const GraphDiff& diff) {
  const Timing own = Measure(kReportRuns, [&] { MakeScene(diff); });
  LaneLayouts::Statistics told;
  const auto lay_out = [&] {
    LaneLayouts lanes({.budget = std::numeric_limits<int32_t>::max()});
    MakeScene(diff, {.lanes = &lanes});
    told = lanes.statistics();
  };
  const Timing both = Measure(kReportRuns, lay_out);
  fmt::print("\nslabs of {}: {} lanes, {} shapes, {} placed both ways, {} by dot, {} failed\n",
             name, told.lanes, told.shapes, told.compared, told.by_dot, told.failed);
  PrintTiming("scene, rows by longest paths", own);
  PrintTiming("scene, the better of both", both);
  fmt::print("{:<28}{:>11}{:>9}{:>10}{:>7}\n", "", "crossings", "covered", "sideways", "rows");
  for (const auto& [way, cost] : {std::pair{"longest paths", told.paths},
                                  {"dot", told.dot},
                                  {"the better of both", told.chosen}}) {
    fmt::print("{:<28}{:>11}{:>9}{:>10}{:>7}\n", way, cost.crossings, cost.covered, cost.length,
               cost.rows);
  }
  return Ok();
}

/// The slabs of a graph of the user's.
Status MeasureSlabsOf(const std::string& text) {
  STRATA_TRY(const Snapshot snapshot, LoadRef(text));
  DiffOptions options;
  options.stable_ids = true;
  STRATA_TRY(const GraphDiff diff, Diff(snapshot.graph(), snapshot.graph(), options));
  return MeasureSlabs(text, diff);
}

/// What the report shows of a pass: here canonicalize, which changes a node in five. The page goes
/// to `page`, if that is a name, for tests/browser/bench.py.
Status MeasureScene(int nodes, bool with_limits, const std::string& page) {
  const std::unique_ptr<Module> before = TransformerLikeGraph(nodes);
  const std::unique_ptr<Module> after = before->Clone();
  STRATA_TRY([[maybe_unused]] const Changed changed, Canonicalize().Run(*after));
  DiffOptions options;
  options.stable_ids = true;
  STRATA_TRY(const GraphDiff diff, Diff(before->graph({0}), after->graph({0}), options));
  fmt::print("\n{} nodes, {} differences\n", diff.before.size(),
             diff.summary.changed + diff.summary.inserted + diff.summary.deleted);
  Scene scene;
  PrintTiming("scene: clusters, lanes, rows, edges",
              Measure(kReportRuns, [&] { scene = MakeScene(diff); }), with_limits ? 500 : 0);
  SceneData data;
  PrintTiming("as JSON columns", Measure(kReportRuns, [&] {
                Texts names, lines;
                data = SceneJson(diff, scene, {}, names, lines);
              }));
  if (!with_limits) STRATA_RETURN_IF_ERROR(MeasureSlabs("these layers", diff));
  STRATA_TRY(const ReportModel model, DiffReport(diff, "before", "after"));
  STRATA_TRY(const std::string html, ReportHtml(model));
  fmt::print("{:<36} {:>9.2f} MB\n", "size of the page", static_cast<double>(html.size()) / 1e6);
  return page.empty() ? Ok() : WriteFile(page, html);
}

/// A pass: in a few layers of many, one operator becomes another.
std::string WithEditedLines(const std::string& text, int pass) {
  std::string out;
  size_t begin = 0;
  for (size_t end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    const size_t layer = line.find("module=layers.");
    constexpr std::string_view kView = "aten.view.default";
    const size_t view = line.find(kView);
    if (layer != std::string::npos && view != std::string::npos &&
        std::atoi(line.c_str() + layer + 14) / 24 == pass) {
      line.replace(view, kView.size(), "aten.reshape.default");
    }
    out += line + "\n";
  }
  return out;
}

/// A whole run: 13 passes over a step of 7,000 nodes, from the trace to the page.
Status MeasureRun() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     fmt::format("strata-bench-report-{}.strata", ::getpid());
  STRATA_TRY(const auto writer, TraceWriter::Create(path.string()));
  STRATA_TRY(const RunId run, writer->BeginRun({}));
  std::string text = PrintText(TransformerLikeGraph(7000)->graph({0}), {.stable_ids = true}) + "\n";
  STRATA_TRY(const std::unique_ptr<Module> first, ParseText(text));
  STRATA_TRY(SnapshotId last, writer->AddSnapshot(run, "step", first->graph({0})));
  for (int pass = 0; pass < 13; ++pass) {
    text = WithEditedLines(text, pass);
    STRATA_TRY(const std::unique_ptr<Module> after, ParseText(text));
    PassRecord record;
    record.index = pass;
    record.name = fmt::format("pass_{}", pass);
    record.graph = "step";
    record.before = last;
    STRATA_TRY(const StoredPass stored, writer->RecordPass(run, record, &after->graph({0})));
    last = stored.record.after;
  }
  STRATA_RETURN_IF_ERROR(writer->EndRun(run, RunStatus::kFinished));
  STRATA_RETURN_IF_ERROR(writer->Finish());
  STRATA_TRY(const auto trace, TraceReader::Open(path.string()));
  Status status = Ok();
  std::string html;
  const Timing timing = Measure(3, [&] {
    Result<ReportModel> model = MakeReport(*trace);
    Result<std::string> page = model ? ReportHtml(*model) : model.error();
    if (page) {
      html = std::move(page).value();
    } else {
      status = page.error();
    }
  });
  std::error_code error;
  std::filesystem::remove(path, error);
  STRATA_RETURN_IF_ERROR(std::move(status));
  fmt::print("\nrun of 13 passes, 14 snapshots of {} nodes\n", first->graph({0}).num_nodes());
  PrintTiming("report: from the trace to the page", timing, 1000);
  fmt::print("{:<36} {:>9.2f} MB {:>26}\n", "size of the page",
             static_cast<double>(html.size()) / 1e6, "limit 2 MB");
  return Ok();
}

}  // namespace

Result<Exit> BenchReport(Args args) {
  std::string pages, slabs;
  Flags flags("bench report", "measures what a report computes, on graphs of 10k and 100k nodes");
  flags.Option("--pages", "DIR", &pages, "write the pages too: 10k.html, 100k.html");
  flags.Option("--slabs", "REF", &slabs, "only place the nodes of this graph, both ways");
  flags.Example("strata bench report");
  flags.Example("strata bench report --slabs 'T#graph=step'");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (!slabs.empty()) {
    STRATA_RETURN_IF_ERROR(MeasureSlabsOf(slabs));
    return Exit::kOk;
  }
  const auto page = [&](std::string_view name) {
    return pages.empty() ? "" : fmt::format("{}/{}", pages, name);
  };
  STRATA_RETURN_IF_ERROR(MeasureScene(10'000, false, page("10k.html")));
  STRATA_RETURN_IF_ERROR(MeasureScene(100'000, true, page("100k.html")));
  STRATA_RETURN_IF_ERROR(MeasureRun());
  return Exit::kOk;
}

}  // namespace strata::cli
