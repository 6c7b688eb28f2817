#pragma once
#include <string>
#include <vector>

#include "diff/model/graph_diff.h"
#include "tlparse-export/report/report_model.h"

namespace strata {

/// What a difference comes from: patterns, and hunks that are alone; most nodes first, a few.
std::vector<ReportCause> CausesOf(const GraphDiff& diff);

/// The innermost module that holds a hunk; "" when none is known.
std::string PlaceOfHunk(const GraphDiff& diff, const Hunk& hunk);

}  // namespace strata
