#include "cli/traces/diff_runs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/render/code_text.h"
#include "cli/render/diff_text.h"
#include "diff/diff.h"
#include "diff/history/aot_graphs.h"
#include "diff/history/history.h"
#include "diff/history/history_code.h"
#include "diff/output/diff_json.h"
#include "refs/histories.h"
#include "refs/ref.h"
#include "tlparse-export/report/diff_report.h"
#include "tlparse-export/review/markdown.h"

namespace strata::cli {
namespace {

// GitHub takes comments of 65,536 characters.
constexpr size_t kMaxComment = 60'000, kLeastOfGraph = 4'000;

/// A graph of both runs at corresponding snapshots, or of one.
struct Compared {
  std::string label = {};               ///< `graph 'aot_joint_graph' [0/0]`, `pass 3 'dce', rank 1`
  std::string before = {}, after = {};  ///< REFs; "": this side does not have it
  size_t run = 0;                       ///< of each side
  std::optional<GraphDiff> diff = {};
  std::optional<PolicyVerdict> verdict = {};
  // The diff refers to them.
  std::optional<LoadedGraph> graphs[2] = {};

  bool is_equal() const { return !before.empty() && !after.empty() && (!diff || diff->Equal()); }
  bool passes() const {
    if (before.empty() || after.empty()) return false;
    return is_equal() || (verdict && verdict->allowed());
  }
};

/// Generated code that differs, of one rank.
struct ComparedCode {
  const History *before, *after;
  std::vector<CodeDifference> differences;
};

std::string LabelOf(const History& history, const HistoryStep& step, bool with_rank) {
  const auto graph = static_cast<size_t>(step.graph);
  std::string label = fmt::format("graph '{}'", history.graphs[graph]);
  const std::string compilation =
      graph < history.records.size() ? history.records[graph].compilation : "";
  const bool is_in_name = history.graphs[graph].ends_with("@" + compilation);
  if (!compilation.empty() && !is_in_name) label += fmt::format(" [{}]", compilation);
  if (!step.pass.empty()) label += fmt::format(" after pass '{}'", step.pass);
  if (with_rank) label += fmt::format(", rank {}", history.rank);
  return label;
}

std::string RefOfStep(const History& history, const HistoryStep& step) {
  return history.snapshot(step.after).ref;
}

/// Compares the corresponding steps of two runs.
Result<std::vector<Compared>> CompareRun(const History& a, const History& b,
                                         const DiffRunsOptions& options, bool with_rank) {
  std::vector<Compared> compared;
  for (const StepPair& pair : AlignSteps(a, b)) {
    const HistoryStep* step_a = pair.a < 0 ? nullptr : &a.steps[static_cast<size_t>(pair.a)];
    const HistoryStep* step_b = pair.b < 0 ? nullptr : &b.steps[static_cast<size_t>(pair.b)];
    Compared one;
    if (step_a != nullptr && step_b != nullptr) {
      const bool is_folder = IsOfDebugFolder(a);  // names no compilations
      one = {.label = LabelOf(is_folder ? b : a, is_folder ? *step_b : *step_a, with_rank),
             .before = RefOfStep(a, *step_a),
             .after = RefOfStep(b, *step_b)};
      const bool is_same = a.snapshot(step_a->after).content == b.snapshot(step_b->after).content;
      if (!is_same) {
        STRATA_TRY(one.graphs[0], a.load(step_a->after));
        STRATA_TRY(one.graphs[1], b.load(step_b->after));
        STRATA_TRY(one.diff,
                   Diff(one.graphs[0]->graph(), one.graphs[1]->graph(), {.meta = options.meta}));
        if (options.policy != nullptr) one.verdict = CheckPolicy(*options.policy, *one.diff);
      }
    } else if (step_a != nullptr) {
      if (MayLack(b, a, *step_a)) continue;
      one = {.label = LabelOf(a, *step_a, with_rank), .before = RefOfStep(a, *step_a)};
    } else {
      if (MayLack(a, b, *step_b)) continue;
      one = {.label = LabelOf(b, *step_b, with_rank), .after = RefOfStep(b, *step_b)};
    }
    compared.push_back(std::move(one));
  }
  return compared;
}

/// Every graph of a run that the other side lacks.
void AddRun(const History& history, bool is_before, std::vector<Compared>& compared) {
  for (const HistoryStep& step : history.steps) {
    Compared one{.label = LabelOf(history, step, /*with_rank=*/true)};
    (is_before ? one.before : one.after) = RefOfStep(history, step);
    compared.push_back(std::move(one));
  }
}

Result<std::vector<Compared>> CompareAll(const std::vector<History>& before,
                                         const std::vector<History>& after,
                                         const DiffRunsOptions& options) {
  std::vector<Compared> compared;
  const bool with_rank = before.size() > 1 || after.size() > 1;
  const size_t both = std::min(before.size(), after.size());
  for (size_t i = 0; i < both; ++i) {
    STRATA_TRY(std::vector<Compared> of_run, CompareRun(before[i], after[i], options, with_rank));
    for (Compared& one : of_run) {
      one.run = i;
      compared.push_back(std::move(one));
    }
  }
  for (size_t i = both; i < before.size(); ++i)
    AddRun(before[i], /*is_before=*/true, compared);
  for (size_t i = both; i < after.size(); ++i)
    AddRun(after[i], /*is_before=*/false, compared);
  return compared;
}

Result<std::vector<ComparedCode>> CompareCode(const std::vector<History>& before,
                                              const std::vector<History>& after) {
  std::vector<ComparedCode> compared;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    STRATA_TRY(std::vector<CodeDifference> differences, DiffGeneratedCode(before[i], after[i]));
    if (!differences.empty()) compared.push_back({&before[i], &after[i], std::move(differences)});
  }
  return compared;
}

/// What became of a graph, in a few words.
std::string StateOf(const Compared& one) {
  if (one.before.empty()) return "only after";
  if (one.after.empty()) return "only before";
  if (one.is_equal()) return "equal";
  if (one.verdict && one.verdict->allowed()) return "differs, as the policy allows";
  if (!one.verdict) return "differs";
  const size_t count = one.verdict->violations.size();
  return fmt::format("differs, {} violation{} of the policy", count, count == 1 ? "" : "s");
}

std::string Headline(const std::vector<Compared>& compared) {
  const auto equal = std::ranges::count_if(compared, &Compared::is_equal);
  const auto bad = std::ranges::count_if(compared, [](const Compared& c) { return !c.passes(); });
  const auto total = std::ssize(compared);
  std::string text = fmt::format("{} of {} graphs are equal", equal, total);
  if (equal < total) {
    text += bad == 0 ? "; the policy allows the differences"
                     : fmt::format("; {} {} not pass", bad, bad == 1 ? "does" : "do");
  }
  return text;
}

const PolicyVerdict* VerdictOf(const Compared& one) {
  return one.verdict ? &*one.verdict : nullptr;
}

std::string TextOf(const std::vector<Compared>& compared, const std::vector<ComparedCode>& code,
                   const DiffRunsOptions& options) {
  std::string text = Headline(compared) + "\n";
  for (const Compared& one : compared) {
    if (!one.is_equal()) text += fmt::format("  {}: {}\n", one.label, StateOf(one));
  }
  for (const Compared& one : compared) {
    if (one.is_equal() || !one.diff) continue;
    text += fmt::format("\n{}\n", one.label);
    text += DiffText(*one.diff, one.before, one.after,
                     {.colours = options.colours, .verdict = VerdictOf(one), .all = options.all});
  }
  for (const ComparedCode& rank : code) {
    text += "\n";
    if (code.size() > 1) text += fmt::format("rank {}: ", rank.after->rank);
    text += CodeDifferencesText(rank.differences, *rank.before, *rank.after, {.all = options.all});
  }
  return text;
}

std::string JsonOf(const std::vector<Compared>& compared, const std::vector<ComparedCode>& code) {
  std::string text = "{\"schema\": \"strata.diff-runs/1\", \"graphs\": [";
  for (const Compared& one : compared) {
    text += &one == compared.data() ? "\n  {\"label\": " : ",\n  {\"label\": ";
    AppendJsonString(one.label, text);
    text += ", \"before\": ";
    AppendJsonString(one.before, text);
    text += ", \"after\": ";
    AppendJsonString(one.after, text);
    text +=
        fmt::format(", \"equal\": {}, \"passes\": {}, \"diff\": ", one.is_equal(), one.passes());
    text += one.diff && !one.is_equal() ? DiffJson(*one.diff, one.before, one.after, VerdictOf(one))
                                        : "null";
    text += '}';
  }
  text += "\n], \"generated_code\": [";
  for (const ComparedCode& rank : code) {
    text += &rank == code.data() ? "\n  " : ",\n  ";
    JsonWriter json(text);
    json.BeginObject().Field("rank", rank.after->rank);
    WriteCodeJson(json, rank.differences, *rank.before, *rank.after);
    json.EndObject();
  }
  return text + "]}\n";
}

/// A list of what differs in generated code.
std::string CodeMarkdown(const std::vector<ComparedCode>& code) {
  constexpr size_t kShown = 40;
  std::string text;
  size_t count = 0;
  for (const ComparedCode& rank : code) {
    for (const CodeDifference& difference : rank.differences) {
      text += fmt::format("- `{}`: {}\n", difference.label,
                          DescribeCode(difference, *rank.before, *rank.after));
      for (const KernelDiff& kernel : difference.kernels) {
        if (++count <= kShown) text += fmt::format("  - `{}`\n", DescribeKernel(kernel));
      }
    }
  }
  if (count > kShown) text += fmt::format("- and {} more kernels\n", count - kShown);
  return text.empty() ? text : "\n#### Generated code\n\n" + text;
}

/// A list of all graphs, then the comments on those that differ as far as there is room: first
/// those that do not pass.
Result<std::string> MarkdownOf(const std::vector<Compared>& compared,
                               const std::vector<ComparedCode>& code,
                               const DiffRunsOptions& options) {
  std::string text = fmt::format("### Graphs of two runs: {}\n\n", Headline(compared));
  std::vector<const Compared*> rest;
  size_t listed = 0;
  for (const bool passes : {false, true}) {
    for (const Compared& one : compared) {
      if (one.is_equal() || one.passes() != passes) continue;
      if (one.diff) rest.push_back(&one);
      if (++listed <= 100) text += fmt::format("- `{}`: {}\n", one.label, StateOf(one));
    }
  }
  if (listed > 100) text += fmt::format("- and {} more\n", listed - 100);
  text += CodeMarkdown(code);
  size_t shown = 0;
  for (const Compared* one : rest) {
    const size_t room = kMaxComment - std::min(text.size(), kMaxComment);
    if (room < kLeastOfGraph + one->label.size() + 200) break;
    STRATA_TRY(const std::string comment,
               ReviewMarkdown(*one->diff, {.before_ref = one->before,
                                           .after_ref = one->after,
                                           .verdict = VerdictOf(*one),
                                           .link = options.link,
                                           .max_bytes = std::max(kLeastOfGraph, room / 2)}));
    text += fmt::format("\n#### `{}`\n\n{}", one->label, comment);
    ++shown;
  }
  if (shown < rest.size()) text += fmt::format("\nAnd {} more graphs.\n", rest.size() - shown);
  return text;
}

/// The runs that a page shows: those with the first graph that does not pass, else that differs.
size_t RunToShow(const std::vector<Compared>& compared) {
  const auto is_shown = [](const Compared& one) {
    return !one.before.empty() && !one.after.empty();
  };
  for (const bool may_pass : {false, true}) {
    for (const Compared& one : compared)
      if (is_shown(one) && !one.is_equal() && one.passes() == may_pass) return one.run;
  }
  return 0;
}

}  // namespace

bool NamesRun(const std::string& ref) {
  const auto parsed = ParseRef(ref);
  if (!parsed || parsed->graph || parsed->pass || parsed->file == "-") return false;
  if (std::error_code ignored; std::filesystem::is_directory(parsed->file, ignored)) return true;
  const auto histories = LoadHistories(ref);
  if (!histories) return false;
  size_t graphs = 0;
  for (const History& history : *histories)
    graphs += history.graphs.size();
  return graphs > 1;
}

Result<RunsDiff> DiffRuns(const DiffRunsOptions& options) {
  STRATA_TRY(const std::vector<History> before, LoadHistories(options.before));
  STRATA_TRY(const std::vector<History> after, LoadHistories(options.after));
  STRATA_TRY(const std::vector<Compared> compared, CompareAll(before, after, options));
  STRATA_TRY(const std::vector<ComparedCode> code, CompareCode(before, after));
  // A policy is about graphs: with one, other code is shown and allowed.
  const bool code_passes = code.empty() || options.policy != nullptr;
  RunsDiff diff{.text = {},
                .note = {},
                .passes = code_passes && std::ranges::all_of(compared, &Compared::passes)};
  if (options.format == "json") {
    diff.text = JsonOf(compared, code);
  } else if (options.format == "md") {
    STRATA_TRY(diff.text, MarkdownOf(compared, code, options));
  } else if (options.format == "html") {
    const size_t run = RunToShow(compared);
    if (before.size() > 1 || after.size() > 1) {
      diff.note = fmt::format("the page shows rank {} of several: name another one by #rank=R",
                              before[run].rank);
    }
    STRATA_TRY(const ReportModel report, RunsReport(before[run], after[run]));
    STRATA_TRY(diff.text, ReportHtml(report));
  } else {
    diff.text = TextOf(compared, code, options);
  }
  return diff;
}

}  // namespace strata::cli
