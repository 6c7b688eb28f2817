#pragma once
#include <string>

#include "diff/model/graph_diff.h"
#include "tests/bench/diff_eval/tally.h"
#include "tests/bench/diff_eval/truth.h"

namespace strata::bench {

/// Prints where a diff and the truth part: nodes, fields, relations, the first of each.
void Explain(const std::string& title, const GraphDiff& diff, const Truth& truth,
             const Tally& tally);

}  // namespace strata::bench
