#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/same_file.h"
#include "base/shell.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/passes/front.h"
#include "cli/render/memory/memory_picture.h"
#include "cli/render/schedule/schedule_lanes.h"
#include "diff/diff.h"
#include "passes/pipeline/schedule/simulation.h"
#include "refs/diff_costs.h"
#include "refs/histories.h"
#include "refs/pipeline_actions.h"
#include "refs/ref.h"
#include "refs/source_trace.h"
#include "store/trace_reader.h"
#include "tlparse-export/report/diff_report.h"
#include "tlparse-export/report/report_model.h"

namespace strata::cli {
namespace {

/// What the ranks of a pipeline did in the last step that was profiled, and as it is simulated.
Result<std::string> PipelineFigure(TraceReader& trace) {
  std::optional<MeasuredStep> last;
  for (const StoredRun& run : trace.runs()) {
    STRATA_TRY(std::optional<MeasuredStep> step, LoadMeasuredStep(trace, run.id));
    if (step) last = std::move(step);
  }
  if (!last) return std::string();
  const PipelineSchedule& schedule = last->schedule.schedule;
  const Simulation simulated = Simulate(schedule, last->schedule.times);
  return ScheduleSvg(
      {{fmt::format("measured in step {}, µs", last->step), schedule, last->schedule.measured},
       {"simulated, µs", schedule, simulated}});
}

/// The whole of a trace, a log, a folder of logs.
Result<ReportModel> ReportOfFile(const std::string& input, ReportOptions options) {
  if (options.title.empty()) options.title = std::filesystem::path(input).filename().string();
  STRATA_TRY(const SourceTrace source, SourceTrace::Open(input, "strata report " + input, Warn));
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(source.path()));
  STRATA_TRY(ReportModel model, MakeReport(*trace, options));
  STRATA_TRY(model.figure, PipelineFigure(*trace));
  return model;
}

/// What one pass did, or one graph as it stands.
Result<ReportModel> ReportOfRef(const std::string& text, const Ref& ref) {
  if (!ref.pass || ref.side != Ref::Side::kUnspecified) {
    STRATA_TRY(const Snapshot snapshot, LoadRef(text));
    return GraphReport(snapshot.graph(), text);
  }
  const size_t end = std::min(text.find(',', text.rfind("pass=")), text.size());
  std::string before_ref = text, after_ref = text;
  before_ref.insert(end, ":before");
  after_ref.insert(end, ":after");
  STRATA_TRY(const Snapshot before, LoadRef(before_ref));
  STRATA_TRY(const Snapshot after, LoadRef(after_ref));
  STRATA_TRY(const GraphDiff diff, Diff(before.graph(), after.graph(), OptionsFor(before, after)));
  return DiffReport(diff, before_ref, after_ref, *ref.pass);
}

/// A side of two.
struct Input {
  std::string ref;
  std::string chrome;  ///< a trace of PyTorch's profiler; "": none
};

Result<ReportModel> ReportOfRuns(const Input& before, const Input& after) {
  STRATA_TRY(const History a, LoadHistory(before.ref));
  STRATA_TRY(const History b, LoadHistory(after.ref));
  STRATA_TRY(const RunCosts costs, RunCosts::Open(a, before.chrome, b, after.chrome));
  return RunsReport(a, b, [&](const GraphDiff& diff, int32_t in_before, int32_t in_after) {
    return costs.Of(diff, in_before, in_after);
  });
}

/// Two graphs when the selectors name them, else two runs.
Result<ReportModel> ReportOfTwo(const Input& before, const Input& after) {
  STRATA_TRY(const Ref before_ref, ParseRef(before.ref));
  STRATA_TRY(const Ref after_ref, ParseRef(after.ref));
  const bool are_graphs =
      (before_ref.graph || before_ref.pass) && (after_ref.graph || after_ref.pass);
  if (!are_graphs) return ReportOfRuns(before, after);
  STRATA_TRY(const Snapshot a, LoadRef(before.ref));
  STRATA_TRY(const Snapshot b, LoadRef(after.ref));
  STRATA_TRY(const GraphDiff diff, Diff(a.graph(), b.graph(), OptionsFor(a, b)));
  const bool needs_times = !before.chrome.empty();
  STRATA_TRY(const CostComparison costs,
             CostsOfDiff(diff, {a.ref, a.graph_name, before.chrome},
                         {b.ref, b.graph_name, after.chrome}, needs_times));
  return DiffReport(diff, before.ref, after.ref, "diff", &costs);
}

/// Shows a file in the user's browser, which this program does not wait for.
Status OpenInBrowser(const std::string& file) {
  const std::string command =
      fmt::format("${{BROWSER:-xdg-open}} {} >/dev/null 2>&1 </dev/null", ShellWord(file));
  if (std::system(command.c_str()) != 0) {  // NOLINT(cert-env33-c): the user's own command
    return Error("cannot open a browser: {}: open the file by hand, or set BROWSER", file);
  }
  return Ok();
}

/// Without the folders of files: those of the report's maker mean nothing elsewhere. Other words
/// stay.
std::string WithoutFolders(std::string_view words) {
  std::string out;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    const size_t quote = word.starts_with('\'') || word.starts_with('"') ? 1 : 0;
    const std::string_view path = word.substr(quote, word.find('#') - quote);
    const size_t name = path.ends_with('/') ? path.rfind('/', path.size() - 2) : path.rfind('/');
    const bool is_path =
        name != std::string_view::npos && path.find_first_of("={") == std::string_view::npos;
    out += word.substr(0, quote);
    out += word.substr(quote + (is_path ? name + 1 : 0));
    out += words.substr(end, end < words.size() ? 1 : 0);
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return out;
}

void HideFolders(ReportModel& model) {
  for (ReportRun& run : model.runs) {
    run.source = WithoutFolders(run.source);
    run.command = WithoutFolders(run.command);
  }
}

/// Rejects an output that is one of the files of `refs`; a report beside logs in their folder is
/// fine.
Status CheckOutput(const std::string& output, const std::vector<std::string>& refs) {
  std::vector<NamedPath> inputs;
  for (const std::string& text : refs) {
    if (text.empty()) continue;
    STRATA_TRY(const Ref ref, ParseRef(text));
    std::error_code ignored;
    if (!std::filesystem::is_directory(ref.file, ignored)) inputs.push_back({"REF", ref.file});
  }
  return CheckOutputs(std::vector<NamedPath>{{"--output", output}}, inputs);
}

}  // namespace

Result<Exit> RunReport(Args args) {
  Input input, other;
  std::string output, pareto;
  bool open = false, full_paths = false;
  ReportOptions options;
  Flags flags("report",
              "writes one HTML file that shows what each pass did, or how two runs differ");
  flags.Positional(
      "REF", &input.ref,
      "a trace, a log, a folder of logs, an FX text; with a selector, a pass or a graph");
  flags.OptionalPositional("REF2", &other.ref, "a run or a graph to compare with");
  flags.Required("-o,--output", "FILE", &output, "the report to write; - is standard output");
  flags.Option("--title", "TEXT", &options.title, "heading; default: the file's name");
  flags.Option("--chrome-before", "FILE", &input.chrome,
               "with REF2: the trace that torch.profiler wrote of REF, a log, for the tab Costs; "
               "else the times are those that strata train --profile recorded");
  flags.Option("--chrome-after", "FILE", &other.chrome, "the same of REF2");
  flags.Switch("--full-paths", &full_paths,
               "name inputs with their folders; else a report shows their base names");
  flags.Option("--pareto", "REF", &pareto,
               "also draw the plans of the pass budget for a graph, in the view Memory");
  flags.Switch("--open", &open, "open the report in the browser");
  flags.Example("strata report run.strata -o run.html --open");
  flags.Example("strata report 'run.strata#pass=dce' -o dce.html");
  flags.Example("strata report yesterday.log today.log -o both.html");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const Ref ref, ParseRef(input.ref));
  STRATA_RETURN_IF_ERROR(CheckOutput(output, {input.ref, other.ref, input.chrome, other.chrome}));
  if (input.chrome.empty() != other.chrome.empty() ||
      (other.ref.empty() && !input.chrome.empty())) {
    return Error(
        "--chrome-before, --chrome-after: times of two sides are compared: give both, and "
        "REF2");
  }
  Result<ReportModel> made = !other.ref.empty()      ? ReportOfTwo(input, other)
                             : ref.graph || ref.pass ? ReportOfRef(input.ref, ref)
                                                     : ReportOfFile(input.ref, options);
  STRATA_TRY(ReportModel model, std::move(made));
  if (!options.title.empty()) model.title = options.title;
  if (!full_paths) HideFolders(model);
  if (!pareto.empty()) {
    STRATA_TRY(const Snapshot snapshot, LoadRef(pareto));
    STRATA_TRY(const MemoryFront front, FrontOf(snapshot, pareto, {}));
    model.memory_markup = FrontMarkup(snapshot.graph(), front);
  }
  STRATA_TRY(const std::string html, ReportHtml(model));
  STRATA_RETURN_IF_ERROR(WriteFile(output, html));
  if (open && output != "-") STRATA_RETURN_IF_ERROR(OpenInBrowser(output));
  return Exit::kOk;
}

}  // namespace strata::cli
