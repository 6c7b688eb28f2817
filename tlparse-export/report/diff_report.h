#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "diff/history/history.h"
#include "diff/model/graph_diff.h"
#include "scene/cost_diff.h"
#include "tlparse-export/report/report_model.h"

namespace strata {

/// The report of two graphs from anywhere: one run, with one pass that turns the one into the
/// other, called `name`. `costs`: of the diff; null: those that follow from shapes. `ReportHtml`
/// writes it.
Result<ReportModel> DiffReport(const GraphDiff& diff, std::string_view before_ref,
                               std::string_view after_ref, std::string_view name = "diff",
                               const CostComparison* costs = nullptr);

/// The report of one graph as it stands.
Result<ReportModel> GraphReport(const Graph& graph, std::string_view ref);

/// The report of two runs: one run, whose passes are the corresponding steps of both (AlignSteps)
/// and show what the first run's graph became in the second. Steps that only one run has are
/// listed. `costs` gives the costs of two snapshots, one of each history; null: those that follow
/// from shapes. Errors: its own; a graph that cannot be loaded.
using CostsOfPair = std::function<Result<CostComparison>(
    const GraphDiff& diff, int32_t before_snapshot, int32_t after_snapshot)>;
Result<ReportModel> RunsReport(const History& before, const History& after,
                               const CostsOfPair& costs = {});

}  // namespace strata
