#include "refs/check_provenance.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "diff/compare/contradictions.h"
#include "diff/diff.h"
#include "refs/histories.h"
#include "store/trace_reader.h"

namespace strata {

Result<std::vector<std::string>> CheckProvenance(const std::string& path) {
  std::vector<std::string> found;
  {
    STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
    const bool is_empty =
        std::ranges::all_of(trace->runs(), [](const StoredRun& run) { return run.graphs.empty(); });
    if (is_empty) return found;
  }
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

}  // namespace strata
