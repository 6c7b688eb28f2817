#include "diff/history/made_by.h"

#include <optional>
#include <utility>
#include <vector>

#include "diff/diff.h"
#include "diff/history/lineage.h"

namespace strata {

Result<IdVector<EntityId, std::string>> PassesThatMade(const History& history, int32_t snapshot) {
  std::vector<const HistoryStep*> steps;  // of the graph, by snapshot of the lineage
  std::optional<Lineage> lineage;
  LoadedGraph last;
  for (const HistoryStep& step : history.steps) {
    if (step.graph != history.snapshot(snapshot).graph) continue;
    const int32_t before = steps.empty() ? -1 : steps.back()->after;
    steps.push_back(&step);
    if (before >= 0 && SameGraph(history, before, step.after)) {
      lineage->AddUnchanged();
    } else {
      STRATA_TRY(LoadedGraph now, history.load(step.after));
      if (lineage) {
        STRATA_TRY(const GraphDiff diff,
                   Diff(last.graph(), now.graph(), {.stable_ids = history.stable_ids}));
        lineage->Add(diff);
      } else {
        lineage.emplace(Listing(now.graph()).size());
      }
      last = std::move(now);
    }
    if (step.after == snapshot) break;
  }
  STRATA_CHECK(lineage.has_value(), "a snapshot of no step");
  const Listing listing(last.graph());
  IdVector<EntityId, std::string> passes(listing.ids().size(), std::string());
  const int32_t end = lineage->num_snapshots() - 1;
  for (EntityId id : listing.ids()) {
    const int32_t first = lineage->first(lineage->NodeHistoryAt(end, id));
    if (first > 0) passes[id] = steps[static_cast<size_t>(first)]->pass;
  }
  return passes;
}

}  // namespace strata
