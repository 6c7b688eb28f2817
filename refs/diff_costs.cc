#include "refs/diff_costs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "diff/history/made_by.h"
#include "ir/fingerprint.h"
#include "refs/histories.h"
#include "store/trace_reader.h"

namespace strata {
namespace {

using PassOfEntity = IdVector<EntityId, std::string>;

/// The table with the StableIds of `graph`, which is `measured`, loaded another time.
StatisticsTable TableOf(const MeasuredGraph& measured, const Graph& graph) {
  std::map<StableId, StableId> ids;
  const Graph& other = measured.graph.graph();
  const auto nodes = graph.nodes();
  auto node = nodes.begin();
  for (NodeId id : other.nodes()) {
    if (node == nodes.end()) break;
    ids.emplace(other.node(id).stable_id, graph.node(*node).stable_id);
    ++node;
  }
  StatisticsTable table = measured.table;
  for (NodeStatistics& statistics : table.nodes)
    statistics.node = ids.at(statistics.node);
  return table;
}

/// Costs without the passes that made the nodes.
SideCosts CostsOfSide(const Listing& listing, const GraphTimes::Times* times) {
  if (times == nullptr) return CostsOf(listing, StatisticsTable());
  SideCosts costs = CostsOf(listing, times->table);
  costs.rest_us = times->rest_us;
  return costs;
}

/// Times of one side alone say nothing about a change: both or none.
CostComparison Compare(const GraphDiff& diff, const std::optional<GraphTimes::Times>& before,
                       const std::optional<GraphTimes::Times>& after) {
  CostComparison costs;
  costs.has_times = before && after;
  costs.before = CostsOfSide(diff.before, costs.has_times ? &*before : nullptr);
  costs.after = CostsOfSide(diff.after, costs.has_times ? &*after : nullptr);
  return costs;
}

/// The passes that made the nodes of a side; empty where its history does not say.
Result<PassOfEntity> PassesOfSide(const CostSource& side, const Graph& graph) {
  STRATA_TRY(const std::vector<History> histories, LoadHistories(side.ref));
  const Fingerprint fingerprint = FingerprintOf(graph);
  for (const History& history : histories) {
    for (auto step = history.steps.rbegin(); step != history.steps.rend(); ++step) {
      if (history.GraphOf(*step) != side.graph) continue;
      for (const int32_t snapshot : {step->after, step->before}) {
        if (snapshot < 0) continue;
        STRATA_TRY(const LoadedGraph loaded, history.load(snapshot));
        if (FingerprintOf(loaded.graph()) != fingerprint) continue;
        return PassesThatMade(history, snapshot);
      }
    }
  }
  return PassOfEntity();
}

/// Microseconds of a call that belong to no known node.
double RestOf(const StatisticsTable& table) {
  double us = 0;
  for (const StatisticsTable::Rest& rest : table.rest)
    us += static_cast<double>(rest.time_ns) / 1e3 / static_cast<double>(table.steps);
  return us;
}

}  // namespace

Result<GraphTimes> GraphTimes::Open(const std::string& ref, const std::string& chrome) {
  GraphTimes times;
  times.ref_ = ref;
  times.chrome_ = chrome;
  if (!chrome.empty()) {
    STRATA_TRY(const std::vector<History> histories, LoadHistories(ref));
    STRATA_TRY(times.measured_, MeasureByChrome(histories, chrome));
    return times;
  }
  STRATA_TRY(const Ref parsed, ParseRef(ref));
  if (!LooksLikeTrace(parsed.file)) return times;
  STRATA_TRY(times.recorded_, RecordedTimes(parsed));
  return times;
}

std::optional<GraphTimes::Times> GraphTimes::Of(const Graph& graph, const std::string& name) const {
  const Fingerprint fingerprint = FingerprintOf(graph);
  const auto last = std::ranges::find(recorded_.rbegin(), recorded_.rend(), fingerprint,
                                      &StatisticsTable::fingerprint);
  if (last != recorded_.rend()) return Times{*last, RestOf(*last)};
  for (const MeasuredGraph& measured : measured_) {
    if (measured.table.fingerprint != fingerprint || measured.name != name) continue;
    return Times{TableOf(measured, graph), RestOf(measured.table)};
  }
  return std::nullopt;
}

Error GraphTimes::Missing() const {
  if (chrome_.empty()) return NoRecordedTimes(ref_);
  std::string names;
  for (const MeasuredGraph& measured : measured_)
    names += "\n  #graph=" + measured.name;
  return Error("no times of this graph: {}: {} has times of:{}", ref_, chrome_, names);
}

Result<CostComparison> CostsOfDiff(const GraphDiff& diff, const CostSource& before,
                                   const CostSource& after, bool needs_times) {
  const Graph &graph_before = diff.before.root(), &graph_after = diff.after.root();
  STRATA_TRY(const GraphTimes times_before, GraphTimes::Open(before.ref, before.chrome));
  STRATA_TRY(const GraphTimes times_after, GraphTimes::Open(after.ref, after.chrome));
  const auto found_before = times_before.Of(graph_before, before.graph);
  const auto found_after = times_after.Of(graph_after, after.graph);
  if (needs_times && !found_before) return times_before.Missing();
  if (needs_times && !found_after) return times_after.Missing();
  CostComparison costs = Compare(diff, found_before, found_after);
  STRATA_TRY(costs.before.pass, PassesOfSide(before, graph_before));
  STRATA_TRY(costs.after.pass, PassesOfSide(after, graph_after));
  costs.changes = DiffCosts(diff, costs.before, costs.after);
  return costs;
}

Result<RunCosts> RunCosts::Open(const History& before, const std::string& chrome_before,
                                const History& after, const std::string& chrome_after) {
  STRATA_TRY(GraphTimes times_before, GraphTimes::Open(before.ref, chrome_before));
  STRATA_TRY(GraphTimes times_after, GraphTimes::Open(after.ref, chrome_after));
  return RunCosts({&before, std::move(times_before)}, {&after, std::move(times_after)});
}

Result<CostComparison> RunCosts::Of(const GraphDiff& diff, int32_t before, int32_t after) const {
  const auto times = [](const Side& side, const Graph& graph, int32_t snapshot) {
    const auto name = static_cast<size_t>(side.history->snapshot(snapshot).graph);
    return side.times.Of(graph, side.history->graphs[name]);
  };
  CostComparison costs = Compare(diff, times(before_, diff.before.root(), before),
                                 times(after_, diff.after.root(), after));
  if (costs.has_times) {
    STRATA_TRY(costs.before.pass, PassesThatMade(*before_.history, before));
    STRATA_TRY(costs.after.pass, PassesThatMade(*after_.history, after));
  }
  costs.changes = DiffCosts(diff, costs.before, costs.after);
  return costs;
}

}  // namespace strata
