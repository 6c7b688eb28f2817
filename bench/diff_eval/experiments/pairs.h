#pragma once
#include <string>

#include "base/result.h"

namespace strata::bench {

/// Compares the pairs of DIR/KIND/CASE/{before,after}.txt, where nodes that survived kept their
/// names, and prints precision and recall of each kind and of each method. Names are taken away
/// before matching. With `verbose`, also each case and its first wrong and missed nodes.
Status EvaluatePairs(const std::string& dir, bool baselines, bool verbose);

}  // namespace strata::bench
