#include "diff/ranks/last_snapshots.h"

#include <algorithm>

namespace strata {
namespace {

void Note(const std::string& graph, int32_t snapshot, std::vector<LastSnapshot>& last) {
  const auto known = std::ranges::find(last, graph, &LastSnapshot::graph);
  if (known == last.end()) {
    last.push_back({graph, snapshot});
  } else {
    known->snapshot = snapshot;
  }
}

}  // namespace

std::vector<LastSnapshot> LastSnapshots(const History& history, const History* cached) {
  std::vector<LastSnapshot> last;
  if (cached == nullptr) {
    for (const HistoryStep& step : history.steps)
      Note(history.GraphOf(step), step.after, last);
    return last;
  }
  const GraphNames names = MatchGraphNames(*cached, history);
  for (const StepPair& pair : AlignSteps(*cached, history)) {
    if (pair.b < 0) continue;
    const HistoryStep& step = history.steps[static_cast<size_t>(pair.b)];
    if (pair.a >= 0) {
      Note(cached->GraphOf(cached->steps[static_cast<size_t>(pair.a)]), step.after, last);
    } else if (!MayLack(*cached, history, step)) {
      Note(names.b[static_cast<size_t>(step.graph)], step.after, last);
    }
  }
  return last;
}

}  // namespace strata
