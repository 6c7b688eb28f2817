#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/render/profile_table.h"
#include "ir/fingerprint.h"
#include "refs/ref.h"
#include "store/node_statistics.h"

namespace strata::cli {
namespace {

struct ProfileFlags {
  std::string ref, by = "node";
  int64_t top = 30;
  bool json = false;
};

Result<bool> ParseFlags(Args args, ProfileFlags& out) {
  Flags flags("profile",
              "shows per-node times and statistics recorded with train --profile and --values");
  flags.Positional("REF", &out.ref, "a graph of a run, T#graph=step");
  flags.Choice("--by", &out.by, {"node", "op", "module"}, "sum times by node, operator or module");
  flags.Option("--top", "N", &out.top, "number of rows; 0: all");
  flags.Switch("--json", &out.json, "print strata.profile/1");
  flags.Example("strata profile 't.strata#graph=step'");
  flags.Example("strata profile 't.strata#graph=step' --by module --top 10");
  return flags.Parse(args);
}

Result<StatisticsTable> FindTable(const ProfileFlags& flags, const Graph& graph) {
  STRATA_TRY(const Ref ref, ParseRef(flags.ref));
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(ref.file));
  for (const StoredRun& run : trace->runs()) {
    if (ref.run && static_cast<int64_t>(run.id) != *ref.run) continue;
    STRATA_TRY(const std::vector<StatisticsTable> tables, LoadNodeStatistics(*trace, run));
    for (const StatisticsTable& table : tables) {
      if (table.fingerprint == FingerprintOf(graph)) return table;
    }
  }
  return Error("no times of this graph: {}: record them with strata train --profile N --trace",
               flags.ref);
}

}  // namespace

Result<Exit> RunProfile(Args args) {
  ProfileFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Snapshot snapshot, LoadRef(flags.ref));
  STRATA_TRY(const StatisticsTable table, FindTable(flags, snapshot.graph()));
  const std::vector<ProfileRow> rows = ProfileRows(table, snapshot.graph(), flags.by);
  const auto shown = static_cast<size_t>(std::max<int64_t>(flags.top, 0));
  const std::string text =
      flags.json ? ProfileJson(table, rows) : ProfileText(table, rows, flags.by == "node", shown);
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli
