#pragma once
#include <string_view>

#include "diff/history/history.h"
#include "diff/model/graph_diff.h"
#include "tlparse-export/report/report_model.h"

namespace strata {

/// The report of two graphs from anywhere: one run, with one pass that turns the one into the
/// other, called `name`. `ReportHtml` writes it.
Result<ReportModel> DiffReport(const GraphDiff& diff, std::string_view before_ref,
                               std::string_view after_ref, std::string_view name = "diff");

/// The report of one graph as it stands.
Result<ReportModel> GraphReport(const Graph& graph, std::string_view ref);

/// The report of two runs: one run, whose passes are the corresponding steps of both (AlignSteps)
/// and show what the first run's graph became in the second. Steps that only one run has are
/// listed. Errors: a graph that cannot be loaded.
Result<ReportModel> RunsReport(const History& before, const History& after);

}  // namespace strata
