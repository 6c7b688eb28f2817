#include "store/check.h"

#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/unicode.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "diff/compare/contradictions.h"
#include "diff/diff.h"
#include "refs/histories.h"
#include "refs/ref.h"
#include "store/trace.h"

namespace strata::cli {

namespace {

/// Contradictions between the recorded provenance of each pass and the structure of its graphs.
Result<std::vector<std::string>> CheckProvenance(const std::string& path) {
  std::vector<std::string> found;
  STRATA_TRY(const std::vector<History> histories, LoadHistories(path));
  for (const History& history : histories) {
    if (!history.stable_ids) continue;
    for (const HistoryStep& step : history.steps) {
      if (step.pass_index < 0 || step.before < 0) continue;
      if (SameGraph(history, step.before, step.after)) continue;
      STRATA_TRY(const LoadedGraph before, history.load(step.before));
      STRATA_TRY(const LoadedGraph after, history.load(step.after));
      STRATA_TRY(const std::vector<Provenance> provenance, history.provenance(step));
      STRATA_TRY(const GraphDiff diff,
                 Diff(before.graph(), after.graph(),
                      {.stable_ids = true, .provenance = provenance, .contradictions = true}));
      for (const Contradiction& contradiction : diff.contradictions) {
        found.push_back(fmt::format("{}: pass '{}': {}: {}", step.ref, step.pass,
                                    diff.before.name(contradiction.before),
                                    ToString(diff, contradiction)));
      }
    }
  }
  return found;
}

}  // namespace

Result<Exit> RunCheck(Args args) {
  std::string path;
  bool provenance = false;
  Flags flags("check", "verifies the checksums of everything in a trace");
  flags.Positional("T", &path, "a trace");
  flags.Switch("--provenance", &provenance,
               "also check recorded provenance against graph structure");
  flags.Example("strata check out/demo.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_RETURN_IF_ERROR(CheckWholeFile(path));
  STRATA_TRY(const std::vector<Finding> findings, CheckTrace(path));
  std::string out;
  for (const Finding& finding : findings) {
    out += path;
    if (!finding.table.empty()) out += fmt::format(": table {}", finding.table);
    if (finding.row != 0) out += fmt::format(", row {}", finding.row);
    out += fmt::format(": {}\n", Visible(finding.what));
  }
  size_t count = findings.size();
  if (provenance && findings.empty()) {
    STRATA_TRY(const std::vector<std::string> found, CheckProvenance(path));
    for (const std::string& line : found)
      out += Visible(line) + "\n";
    count = found.size();
  }
  out += count == 0 ? fmt::format("{}: sound\n", path)
                    : fmt::format("{}: {} finding{}\n", path, count, count == 1 ? "" : "s");
  STRATA_RETURN_IF_ERROR(WriteFile("-", out));
  return count == 0 ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
