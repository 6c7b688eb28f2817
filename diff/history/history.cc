#include "diff/history/history.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "diff/graph/hash.h"
#include "diff/graph/sequence.h"
#include "diff/history/aot_graphs.h"

namespace strata {

std::string_view PassOf(const History& history, const HistoryStep& step) {
  if (step.pass_index >= 0) return step.pass;
  if (step.before >= 0 || history.records.empty()) return {};
  return history.records[static_cast<size_t>(step.graph)].ends_pass;
}

namespace {

std::string CompilationOf(const History& history, const HistoryStep& step) {
  if (history.records.empty()) return {};
  return history.records[static_cast<size_t>(step.graph)].compilation;
}

/// Whether one of both is a debug folder and the other a log.
bool IsFolderAgainstLog(const History& a, const History& b) {
  return !a.records.empty() && !b.records.empty() && IsOfDebugFolder(a) != IsOfDebugFolder(b);
}

/// What a step is, without what it did. Texts with which graphs begin in a debug folder are none of
/// those of a log.
std::vector<uint64_t> KeysOf(const History& history, const std::vector<std::string>& names,
                             const History& other) {
  std::vector<uint64_t> keys;
  const uint64_t first = IsFolderAgainstLog(history, other) && IsOfDebugFolder(history) ? 3 : 1;
  for (const HistoryStep& step : history.steps) {
    const uint64_t graph = HashText(names[static_cast<size_t>(step.graph)]);
    const std::string_view pass = PassOf(history, step);
    const uint64_t kind = !pass.empty() ? 2 : step.before < 0 ? first : 0;
    keys.push_back(Mix(Mix(graph, HashText(pass)), kind));
  }
  return keys;
}

/// The graphs on which each pass of each compilation ended, in order.
using PassEnds = std::map<std::pair<std::string, std::string>, std::vector<int32_t>>;
PassEnds PassEndsOf(const History& history, bool by_compilation) {
  PassEnds ends;
  for (const HistoryStep& step : history.steps) {
    const std::string_view pass = PassOf(history, step);
    if (pass.empty()) continue;
    const std::string compilation = by_compilation ? CompilationOf(history, step) : "";
    ends[{compilation, std::string(pass)}].push_back(step.graph);
  }
  return ends;
}

/// False of the output of TORCH_LOGS without the prefixes of its lines.
bool StatesCompilations(const History& history) {
  return std::ranges::any_of(history.records,
                             [](const GraphRecord& record) { return !record.compilation.empty(); });
}

/// Gives graphs of `cached`, which may be an excerpt, that came as the results of passes the names
/// that `other` has for the graphs of these passes.
void NameAsOther(const History& cached, const History& other, std::vector<std::string>& names) {
  if (cached.cached.empty() && !cached.is_excerpt) return;
  const bool by_compilation = StatesCompilations(cached) && StatesCompilations(other);
  const PassEnds here = PassEndsOf(cached, by_compilation),
                 there = PassEndsOf(other, by_compilation);
  for (const auto& [pass, graphs] : here) {
    const auto found = there.find(pass);
    if (found == there.end()) continue;
    if (!cached.is_excerpt && !cached.cached.contains(pass.first)) continue;
    for (size_t i = 0; i < std::min(graphs.size(), found->second.size()); ++i) {
      const auto graph = static_cast<size_t>(graphs[i]);
      if (cached.records[graph].ends_pass.empty()) continue;
      names[graph] = other.graphs[static_cast<size_t>(found->second[i])];
    }
  }
}

/// Gives graphs of the debug folder `folder` the names that `other` has for graphs of their ids.
void NameByAotId(const History& folder, const History& other, std::vector<std::string>& names) {
  if (!IsFolderAgainstLog(folder, other) || !IsOfDebugFolder(folder)) return;
  const auto there = GraphsByAotId(other);
  for (const auto& [id, graph] : GraphsByAotId(folder)) {
    const auto found = there.find(id);
    if (found == there.end()) continue;
    names[static_cast<size_t>(graph)] = other.graphs[static_cast<size_t>(found->second)];
  }
}

/// The graphs that came with records of a name, by compilation, in order.
std::map<std::string, std::vector<size_t>> GraphsOfRecord(const History& history,
                                                          std::string_view name,
                                                          bool by_compilation) {
  std::map<std::string, std::vector<size_t>> graphs;
  for (size_t g = 0; g < history.records.size(); ++g) {
    const GraphRecord& record = history.records[g];
    if (record.name == name) graphs[by_compilation ? record.compilation : ""].push_back(g);
  }
  return graphs;
}

/// TORCH_LOGS calls the graph of a program without gradients its forward graph, too.
void NameInference(const History& excerpt, const History& other, std::vector<std::string>& names) {
  if (!excerpt.is_excerpt || other.is_excerpt) return;
  const bool by_compilation = StatesCompilations(excerpt) && StatesCompilations(other);
  const auto forward = GraphsOfRecord(other, "aot_forward_graph", by_compilation);
  const auto inference = GraphsOfRecord(other, "aot_inference_graph", by_compilation);
  for (const auto& [compilation, here] :
       GraphsOfRecord(excerpt, "aot_forward_graph", by_compilation)) {
    const auto there = inference.find(compilation);
    if (there == inference.end() || forward.contains(compilation)) continue;
    for (size_t i = 0; i < std::min(here.size(), there->second.size()); ++i)
      names[here[i]] = other.graphs[there->second[i]];
  }
}

/// True when only a cache explains that `other` lacks this step of `history`.
bool IsFromCache(const History& history, const HistoryStep& step, const History& other) {
  const std::string compilation = CompilationOf(history, step);
  return !compilation.empty() && other.cached.contains(compilation) &&
         !history.cached.contains(compilation);
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

GraphNames MatchGraphNames(const History& a, const History& b) {
  GraphNames names{a.graphs, b.graphs};
  if (a.graphs.size() == 1 && b.graphs.size() == 1) {
    names.b = names.a;
    return names;
  }
  NameAsOther(a, b, names.a);
  NameAsOther(b, a, names.b);
  NameInference(a, b, names.a);
  NameInference(b, a, names.b);
  NameByAotId(a, b, names.a);
  NameByAotId(b, a, names.b);
  return names;
}

bool MayLack(const History& other, const History& history, const HistoryStep& step) {
  if (other.is_excerpt || IsFromCache(history, step, other)) return true;
  return PassOf(history, step) != kPostGradPass && IsFolderAgainstLog(history, other);
}

std::vector<std::string> TakenFromCache(const History& history, const History& other) {
  std::vector<std::string> taken;
  for (const StepPair& pair : AlignSteps(history, other)) {
    if (pair.a < 0 || pair.b >= 0) continue;
    const HistoryStep& step = history.steps[static_cast<size_t>(pair.a)];
    if (IsFromCache(history, step, other)) taken.push_back(DescribeStep(history, step));
  }
  return taken;
}

std::vector<StepPair> AlignSteps(const History& a, const History& b) {
  const GraphNames names = MatchGraphNames(a, b);
  std::vector<StepPair> pairs;
  int32_t next_a = 0, next_b = 0;
  const auto take_until = [&](int32_t end_a, int32_t end_b) {
    while (next_a < end_a)
      pairs.push_back({next_a++, -1});
    while (next_b < end_b)
      pairs.push_back({-1, next_b++});
  };
  for (const auto& [i, j] : CommonSubsequence(KeysOf(a, names.a, b), KeysOf(b, names.b, a))) {
    take_until(i, j);
    pairs.push_back({next_a++, next_b++});
  }
  take_until(static_cast<int32_t>(a.steps.size()), static_cast<int32_t>(b.steps.size()));
  return pairs;
}

}  // namespace strata
