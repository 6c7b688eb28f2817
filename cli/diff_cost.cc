#include "cli/diff_cost.h"

#include <algorithm>
#include <vector>

#include "ir/fingerprint.h"
#include "refs/histories.h"
#include "refs/measured_graphs.h"

namespace strata::cli {
namespace {

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
  SideCosts costs = CostsOf(listing, found->table);
  for (const MeasuredGraph::Rest& rest : found->rest) {
    costs.rest_us +=
        static_cast<double>(rest.time_ns) / 1e3 / static_cast<double>(found->table.steps);
  }
  return costs;
}

}  // namespace

Result<CostDiff> CostsOfDiff(const GraphDiff& diff, const CostSource& before,
                             const CostSource& after) {
  STRATA_TRY(const SideCosts costs_before, CostsOfSide(diff.before, before));
  STRATA_TRY(const SideCosts costs_after, CostsOfSide(diff.after, after));
  return DiffCosts(diff, costs_before, costs_after);
}

}  // namespace strata::cli
