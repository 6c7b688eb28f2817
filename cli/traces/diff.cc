#include "diff/diff.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/core/progress.h"
#include "cli/render/cost_text.h"
#include "cli/render/diff_columns.h"
#include "cli/render/diff_text.h"
#include "cli/traces/diff_runs.h"
#include "diff/output/diff_json.h"
#include "diff/output/partition.h"
#include "diff/patch/make.h"
#include "diff/policy/pins.h"
#include "diff/policy/policy.h"
#include "refs/diff_costs.h"
#include "refs/ref.h"
#include "tlparse-export/report/diff_report.h"
#include "tlparse-export/review/markdown.h"
#include "tlparse-export/review/svg.h"

namespace strata::cli {
namespace {

struct DiffFlags {
  std::string before, after, backward, format = "text", colour = "auto";
  std::string pins, policy, patch, link, image;
  std::string chrome_before, chrome_after;
  bool cost = false, all = false, json = false, side_by_side = false, meta = false, lenient = false;
  int64_t width = 0, context = 3;
};

Result<bool> ParseFlags(Args args, DiffFlags& out) {
  Flags flags("diff", "compares two graphs node by node; exit status 1: they differ");
  flags.Positional("BEFORE", &out.before, "a REF; or a whole run: a trace, a log, or a folder");
  flags.Positional("AFTER", &out.after, "the same: all graphs and passes of two runs are compared");
  flags.OptionalPositional("BACKWARD", &out.backward,
                           "of a joint graph BEFORE and its forward graph AFTER: the backward "
                           "graph; shows which nodes are in which, recomputed, and saved");
  flags.Choice("--format", &out.format, {"text", "json", "md", "html", "svg"},
               "md: a comment for a pull request; html: the report; svg: a picture");
  flags.Switch("--json", &out.json, "the same as --format json");
  flags.Option("--policy", "FILE", &out.policy,
               "the allowed changes (docs/policy.md); exit status 0: all differences are allowed");
  flags.Option("--pins", "FILE", &out.pins, "pairs known to be right or wrong (docs/policy.md)");
  flags.Option("--patch", "FILE", &out.patch, "also write the edit script for 'strata patch'");
  flags.Switch("--meta", &out.meta, "also compare names, locations and sequence numbers");
  flags.Switch("--lenient", &out.lenient, "recover from parse errors; keep what could be parsed");
  flags.Switch("--all", &out.all, "text: show every repetition and every derived change");
  flags.Switch("--side-by-side", &out.side_by_side, "text: print both graphs side by side");
  flags.Option("--width", "COLUMNS", &out.width,
               "side by side: total width (default: the terminal's, or 120)");
  flags.Option("--context", "N", &out.context,
               "side by side: unchanged nodes around each change (default: 3)");
  flags.Choice("--color", &out.colour, {"auto", "always", "never"},
               "text: auto colours on a terminal, unless NO_COLOR is set");
  flags.Switch("--cost", &out.cost,
               "show how time, bytes and peak changed, by change, module, pass and node: as strata "
               "train --profile "
               "recorded them, or as --chrome-before and --chrome-after have them");
  flags.Option("--chrome-before", "FILE", &out.chrome_before,
               "with --cost: the trace that torch.profiler wrote of BEFORE, a log's graph");
  flags.Option("--chrome-after", "FILE", &out.chrome_after, "with --cost: the same of AFTER");
  flags.Option("--link", "URL", &out.link, "md: address of the full report");
  flags.Option("--image", "URL", &out.image, "md: address of a picture of the change");
  flags.Example("strata diff before.txt after.txt");
  flags.Example("strata diff 'run.strata#pass=dce:before' 'run.strata#pass=dce:after'");
  flags.Example("strata diff old.log new.log --format json > diff.json");
  flags.Example("strata diff old.txt new.txt --policy review.toml --format md > comment.md");
  flags.Example("strata diff logs/base logs/head --policy review.toml");
  flags.Example(
      "strata diff 'run.log#graph=aot_joint_graph' 'run.log#graph=aot_forward_graph' "
      "'run.log#graph=aot_backward_graph'");
  flags.Example("strata diff 'old.strata#graph=step' 'new.strata#graph=step' --cost");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return false;
  const bool has_chrome = !out.chrome_before.empty() || !out.chrome_after.empty();
  if (has_chrome && !out.cost)
    return Error("times without --cost: --chrome-before, --chrome-after: give --cost, too");
  if (out.cost && (out.format == "md" || out.format == "svg"))
    return Error("--format {}: --cost prints text, json or html", out.format);
  return true;
}

Result<std::optional<Policy>> ReadPolicy(const std::string& path) {
  if (path.empty()) return std::optional<Policy>();
  STRATA_TRY(const std::string text, ReadFile(path));
  STRATA_TRY(Policy policy, ParsePolicy(text, path));
  return std::optional(std::move(policy));
}

Status TakePins(const std::string& path, const Graph& before, const Graph& after,
                DiffOptions& options) {
  STRATA_TRY(const std::string text, ReadFile(path));
  STRATA_TRY(const Pins pins, ParsePins(text, path));
  for (const std::string& warning : UsePins(pins, before, after, options))
    Warn(warning);
  return Ok();
}

bool UsesColours(const DiffFlags& flags) {
  return flags.colour == "always" || (flags.colour == "auto" && ColoursOnStdout());
}

std::string Text(const DiffFlags& flags, const GraphDiff& diff, const PolicyVerdict* verdict) {
  const bool colours = UsesColours(flags);
  std::string text = DiffText(diff, flags.before, flags.after,
                              {.colours = colours,
                               .verdict = verdict,
                               .all = flags.all,
                               .only_summary = flags.side_by_side});
  if (!flags.side_by_side) return text;
  const int64_t width = flags.width > 0 ? flags.width : WidthOfStdout();
  return text + '\n' +
         DiffColumns(diff, flags.before, flags.after,
                     {.colours = colours,
                      .width = static_cast<size_t>(std::min<int64_t>(width, 10'000)),
                      .context = static_cast<size_t>(std::max<int64_t>(flags.context, 0)),
                      .all = flags.all});
}

Result<std::string> Print(const DiffFlags& flags, const GraphDiff& diff,
                          const PolicyVerdict* verdict) {
  if (flags.json || flags.format == "json") {
    return DiffJson(diff, flags.before, flags.after, verdict);
  }
  if (flags.format == "md") {
    return ReviewMarkdown(diff, {.before_ref = flags.before,
                                 .after_ref = flags.after,
                                 .verdict = verdict,
                                 .link = flags.link,
                                 .image = flags.image});
  }
  if (flags.format == "svg") return ChangeSvg(diff);
  if (flags.format == "html") {
    STRATA_TRY(const ReportModel report, DiffReport(diff, flags.before, flags.after));
    return ReportHtml(report);
  }
  return Text(flags, diff, verdict);
}

/// How times changed, in place of the diff.
Result<std::string> PrintCost(const DiffFlags& flags, const GraphDiff& diff, const Snapshot& before,
                              const Snapshot& after) {
  constexpr bool kNeedsTimes = true;
  STRATA_TRY(const CostComparison costs,
             CostsOfDiff(diff, {before.ref, before.graph_name, flags.chrome_before},
                         {after.ref, after.graph_name, flags.chrome_after}, kNeedsTimes));
  if (flags.json || flags.format == "json")
    return CostJson(costs.changes, flags.before, flags.after);
  if (flags.format == "html") {
    STRATA_TRY(const ReportModel report,
               DiffReport(diff, flags.before, flags.after, "diff", &costs));
    return ReportHtml(report);
  }
  constexpr size_t kShown = 20;
  return DiffText(diff, flags.before, flags.after,
                  {.colours = UsesColours(flags), .only_summary = true}) +
         "\n" + CostText(costs.changes, flags.all ? 0 : kShown);
}

/// All graphs of two runs.
Result<Exit> DiffWholeRuns(const DiffFlags& flags, const Policy* policy) {
  const bool is_single = !flags.pins.empty() || !flags.patch.empty() || flags.side_by_side ||
                         flags.lenient || flags.cost || flags.format == "svg";
  if (is_single) {
    return Error(
        "options of two graphs: {} and {} have several: leave out --pins, --patch, --side-by-side, "
        "--lenient, --cost and svg, or say which graph by #graph=NAME",
        flags.before, flags.after);
  }
  STRATA_TRY(const RunsDiff diff, DiffRuns({.before = flags.before,
                                            .after = flags.after,
                                            .format = flags.json ? "json" : flags.format,
                                            .policy = policy,
                                            .link = flags.link,
                                            .meta = flags.meta,
                                            .all = flags.all,
                                            .colours = UsesColours(flags)}));
  STRATA_RETURN_IF_ERROR(WriteFile("-", diff.text));
  if (!diff.note.empty()) Warn(diff.note);
  return diff.passes ? Exit::kOk : Exit::kDifferences;
}

/// How the joint graph `before` was divided.
Result<Exit> ShowPartition(const DiffFlags& flags, const Snapshot& before, const Snapshot& after) {
  const bool as_json = flags.json || flags.format == "json";
  if (!as_json && flags.format != "text")
    return Error("--format {}: a joint graph with its parts prints text or json", flags.format);
  STRATA_TRY(const Snapshot backward,
             LoadRef(flags.backward, {.lenient = flags.lenient, .warn = Warn}));
  STRATA_TRY(const GraphDiff to_forward,
             Diff(before.graph(), after.graph(), OptionsFor(before, after)));
  STRATA_TRY(const GraphDiff to_backward,
             Diff(before.graph(), backward.graph(), OptionsFor(before, backward)));
  const PartitionRefs refs{flags.before, flags.after, flags.backward};
  STRATA_RETURN_IF_ERROR(
      WriteFile("-", as_json ? PartitionJson(to_forward, to_backward, refs)
                             : PartitionText(to_forward, to_backward, refs, flags.all)));
  return Exit::kOk;
}

}  // namespace

Result<Exit> RunDiff(Args args) {
  DiffFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const std::optional<Policy> policy, ReadPolicy(flags.policy));
  Result<Snapshot> first = LoadRef(flags.before, {.lenient = flags.lenient, .warn = Warn});
  if (!first) {
    if (NamesRun(flags.before) && NamesRun(flags.after))
      return DiffWholeRuns(flags, policy ? &*policy : nullptr);
    return first.error();
  }
  const Snapshot before = *std::move(first);
  STRATA_TRY(const Snapshot after, LoadRef(flags.after, {.lenient = flags.lenient, .warn = Warn}));
  if (!flags.backward.empty()) return ShowPartition(flags, before, after);
  DiffOptions options = OptionsFor(before, after);
  options.meta = flags.meta;
  options.contradictions = options.stable_ids;
  if (!flags.pins.empty()) {
    STRATA_RETURN_IF_ERROR(TakePins(flags.pins, before.graph(), after.graph(), options));
  }
  STRATA_TRY(const GraphDiff diff, Diff(before.graph(), after.graph(), options));
  std::optional<PolicyVerdict> verdict;
  if (policy) verdict = CheckPolicy(*policy, diff);
  STRATA_TRY(const std::string text, flags.cost
                                         ? PrintCost(flags, diff, before, after)
                                         : Print(flags, diff, verdict ? &*verdict : nullptr));
  if (!flags.patch.empty()) {
    STRATA_RETURN_IF_ERROR(WriteFile(flags.patch, MakePatch(diff, {.metadata = flags.meta})));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  const bool passes = verdict ? verdict->allowed() : diff.Equal();
  return passes ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
