#include "diff/history/history.h"

#include <algorithm>

#include <fmt/format.h>

#include "diff/graph/hash.h"
#include "diff/graph/sequence.h"

namespace strata {
namespace {

/// What a step is, without what it did.
std::vector<uint64_t> KeysOf(const History& history, bool graph_names) {
  std::vector<uint64_t> keys;
  for (const HistoryStep& step : history.steps) {
    const uint64_t graph = graph_names ? HashText(history.GraphOf(step)) : 0;
    const uint64_t kind = step.pass_index >= 0 ? 2 : step.before < 0 ? 1 : 0;
    keys.push_back(Mix(Mix(graph, HashText(step.pass)), kind));
  }
  return keys;
}

}  // namespace

bool SameGraph(const History& history, int32_t a, int32_t b) {
  return a == b ||
         (!history.stable_ids && history.snapshot(a).content == history.snapshot(b).content);
}

std::string DescribeStep(const History& history, const HistoryStep& step) {
  if (step.pass_index >= 0) return fmt::format("pass {} '{}'", step.pass_index, step.pass);
  return fmt::format("graph '{}'", history.GraphOf(step));
}

std::vector<StepPair> AlignSteps(const History& a, const History& b) {
  const bool graph_names = a.graphs.size() != 1 || b.graphs.size() != 1;
  std::vector<StepPair> pairs;
  int32_t next_a = 0, next_b = 0;
  const auto take_until = [&](int32_t end_a, int32_t end_b) {
    while (next_a < end_a)
      pairs.push_back({next_a++, -1});
    while (next_b < end_b)
      pairs.push_back({-1, next_b++});
  };
  for (const auto& [i, j] : CommonSubsequence(KeysOf(a, graph_names), KeysOf(b, graph_names))) {
    take_until(i, j);
    pairs.push_back({next_a++, next_b++});
  }
  take_until(static_cast<int32_t>(a.steps.size()), static_cast<int32_t>(b.steps.size()));
  return pairs;
}

}  // namespace strata
