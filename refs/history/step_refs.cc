#include "refs/history/step_refs.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/selector.h"

namespace strata {

void SetStepRefs(History& history) {
  for (HistorySnapshot& snapshot : history.snapshots) {
    if (snapshot.ref.find(",pass=") != std::string::npos) continue;
    const auto equal = std::ranges::find_if(history.snapshots, [&](const HistorySnapshot& other) {
      return other.graph == snapshot.graph && other.content == snapshot.content &&
             other.ref.find(",pass=") != std::string::npos;
    });
    if (equal != history.snapshots.end()) snapshot.ref = equal->ref;
  }
  for (HistoryStep& step : history.steps) {
    step.ref = history.snapshot(step.after).ref;
    if (step.pass_index < 0) continue;
    step.ref = fmt::format("{},graph={},pass={}", history.ref, SelectorValue(history.GraphOf(step)),
                           step.pass_index);
  }
}

}  // namespace strata
