#pragma once
#include <string>

#include "bench/diff_eval/scores/tally.h"
#include "bench/diff_eval/truth/truth.h"
#include "diff/model/graph_diff.h"

namespace strata::bench {

/// Prints where a diff and the truth part: nodes, fields, relations, the first of each.
void Explain(const std::string& title, const GraphDiff& diff, const Truth& truth,
             const Tally& tally);

}  // namespace strata::bench
