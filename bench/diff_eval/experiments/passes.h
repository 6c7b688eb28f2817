#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace strata::bench {

/// Matches what each pass of traces got with what it made of it, by structure alone: names are
/// taken away, and the stable ids that passes keep are the truth. Prints precision and recall of
/// each pass, of all nodes and of those that it touched. A claim that a node is what the pass
/// replaced it by is not an error. With `verbose`, also the first wrong and missed nodes of each
/// run of a pass.
Status EvaluatePasses(const std::vector<std::string>& traces, bool verbose);

}  // namespace strata::bench
