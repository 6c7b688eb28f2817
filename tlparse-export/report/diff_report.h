#pragma once
#include <string_view>

#include "diff/diff.h"
#include "tlparse-export/report/report_model.h"

namespace strata {

/// The report of two graphs from anywhere: one run, with one pass that turns the one into the
/// other. `ReportHtml` writes it.
Result<ReportModel> DiffReport(const GraphDiff& diff, std::string_view before_ref,
                               std::string_view after_ref);

}  // namespace strata
