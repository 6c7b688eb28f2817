#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/profile_table.h"
#include "refs/histories.h"
#include "refs/measured_graphs.h"
#include "refs/ref.h"
#include "store/node_statistics.h"
#include "store/trace.h"

namespace strata::cli {
namespace {

struct ProfileFlags {
  std::string ref, chrome, by = "node";
  int64_t top = 30;
  bool json = false, attach = false;
};

Result<bool> ParseFlags(Args args, ProfileFlags& out) {
  Flags flags("profile",
              "shows per-node times: recorded with train --profile, or of PyTorch's profiler");
  flags.Positional("REF", &out.ref,
                   "a graph of a run, T#graph=step; with --chrome, a log or a trace");
  flags.Option("--chrome", "FILE", &out.chrome,
               "a trace of torch.profiler (export_chrome_trace) of the program that wrote the log");
  flags.Switch(
      "--attach", &out.attach,
      "with --chrome and a trace: store the times in the trace, for diff --cost and others");
  flags.Choice("--by", &out.by, {"node", "op", "module"}, "sum times by node, operator or module");
  flags.Option("--top", "N", &out.top, "number of rows; 0: all");
  flags.Switch("--json", &out.json, "print strata.profile/1");
  flags.Example("strata profile 't.strata#graph=step'");
  flags.Example("strata profile 't.strata#graph=step' --by module --top 10");
  flags.Example("strata profile run.log --chrome trace.json --by op");
  flags.Example("strata profile run.strata --chrome trace.json --attach");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (go_on && out.attach && out.chrome.empty()) {
    return Error("no times: --attach: give --chrome FILE, too");
  }
  return go_on;
}

std::string TextOf(const ProfileFlags& flags, const StatisticsTable& table, const Graph& graph) {
  std::vector<ProfileRow> rows = ProfileRows(table, graph, flags.by);
  for (const StatisticsTable::Rest& rest : table.rest) {
    ProfileRow row;
    row.name = rest.name;
    row.op = "of no known node";
    row.sum.time_ns = rest.time_ns;
    AddRow(std::move(row), rows);
  }
  const auto shown = static_cast<size_t>(std::max<int64_t>(flags.top, 0));
  return flags.json ? ProfileJson(table, rows)
                    : ProfileText(table, rows, flags.by == "node", shown);
}

/// The graphs of a log that a trace of PyTorch's profiler ran.
Status PrintChrome(const ProfileFlags& flags) {
  STRATA_TRY(const Ref ref, ParseRef(flags.ref));
  STRATA_TRY(const std::vector<History> histories, LoadHistories(flags.ref));
  if (flags.attach && !LooksLikeTrace(ref.file))
    return Error("not a trace: {}: --attach stores times in what strata import made", ref.file);
  STRATA_TRY(const std::vector<MeasuredGraph> graphs, MeasureByChrome(histories, flags.chrome));
  if (flags.attach) STRATA_RETURN_IF_ERROR(StoreTimes(ref.file, graphs));
  std::string text;
  if (flags.json && graphs.size() > 1 && !ref.graph) {
    return Error("times of several graphs: {}: name one, #graph={}", flags.ref, graphs[0].name);
  }
  for (const MeasuredGraph& measured : graphs) {
    if (ref.graph && *ref.graph != measured.name) continue;
    if (!text.empty() && !flags.json) text += "\n";
    text += TextOf(flags, measured.table, measured.graph.graph());
  }
  if (text.empty()) {
    return Error(ErrorCode::kNotFound, "no times of graph '{}': {}: leave out the selector",
                 ref.graph.value_or(""), flags.chrome);
  }
  return WriteFile("-", text);
}

}  // namespace

Result<Exit> RunProfile(Args args) {
  ProfileFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  if (!flags.chrome.empty()) {
    STRATA_RETURN_IF_ERROR(PrintChrome(flags));
    return Exit::kOk;
  }
  STRATA_TRY(const Snapshot snapshot, LoadRef(flags.ref));
  STRATA_TRY(const Ref ref, ParseRef(flags.ref));
  STRATA_TRY(const StatisticsTable table, RecordedTimes(ref, snapshot.graph()));
  STRATA_RETURN_IF_ERROR(WriteFile("-", TextOf(flags, table, snapshot.graph())));
  return Exit::kOk;
}

}  // namespace strata::cli
