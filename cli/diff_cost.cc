#include "cli/diff_cost.h"

#include <algorithm>
#include <map>
#include <vector>

#include "diff/history/made_by.h"
#include "ir/fingerprint.h"
#include "refs/histories.h"
#include "refs/measured_graphs.h"

namespace strata::cli {
namespace {

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

Result<SideCosts> CostsOfSide(const Listing& listing, const CostSource& source) {
  STRATA_TRY(const Ref ref, ParseRef(source.snapshot.ref));
  if (source.chrome.empty()) {
    STRATA_TRY(const StatisticsTable table, RecordedTimes(ref, source.snapshot.graph()));
    return CostsOf(listing, table);
  }
  STRATA_TRY(const std::vector<History> histories, LoadHistories(source.snapshot.ref));
  STRATA_TRY(const std::vector<MeasuredGraph> graphs, MeasureByChrome(histories, source.chrome));
  const Fingerprint fingerprint = FingerprintOf(source.snapshot.graph());
  const auto found = std::ranges::find_if(graphs, [&](const MeasuredGraph& measured) {
    return measured.table.fingerprint == fingerprint && measured.name == source.snapshot.graph_name;
  });
  if (found == graphs.end()) {
    std::string names;
    for (const MeasuredGraph& measured : graphs)
      names += "\n  #graph=" + measured.name;
    return Error("no times of this graph: {}: {} has times of:{}", source.snapshot.ref,
                 source.chrome, names);
  }
  SideCosts costs = CostsOf(listing, TableOf(*found, source.snapshot.graph()));
  for (const MeasuredGraph::Rest& rest : found->rest) {
    costs.rest_us +=
        static_cast<double>(rest.time_ns) / 1e3 / static_cast<double>(found->table.steps);
  }
  return costs;
}

/// The passes that made the nodes of a side; empty where its history does not say.
Result<IdVector<EntityId, std::string>> PassesOfSide(const Snapshot& side) {
  STRATA_TRY(const std::vector<History> histories, LoadHistories(side.ref));
  const Fingerprint fingerprint = FingerprintOf(side.graph());
  for (const History& history : histories) {
    for (auto step = history.steps.rbegin(); step != history.steps.rend(); ++step) {
      if (history.GraphOf(*step) != side.graph_name) continue;
      for (const int32_t snapshot : {step->after, step->before}) {
        if (snapshot < 0) continue;
        STRATA_TRY(const LoadedGraph loaded, history.load(snapshot));
        if (FingerprintOf(loaded.graph()) != fingerprint) continue;
        return PassesThatMade(history, snapshot);
      }
    }
  }
  return IdVector<EntityId, std::string>();
}

}  // namespace

Result<CostDiff> CostsOfDiff(const GraphDiff& diff, const CostSource& before,
                             const CostSource& after) {
  STRATA_TRY(SideCosts costs_before, CostsOfSide(diff.before, before));
  STRATA_TRY(SideCosts costs_after, CostsOfSide(diff.after, after));
  STRATA_TRY(costs_before.pass, PassesOfSide(before.snapshot));
  STRATA_TRY(costs_after.pass, PassesOfSide(after.snapshot));
  return DiffCosts(diff, costs_before, costs_after);
}

}  // namespace strata::cli
