#pragma once
#include "diff/graph/listing.h"
#include "diff/match/matching.h"
#include "diff/model/diff_options.h"

namespace strata {

/// Takes what the caller knows: pairs that must not be, then pairs that are. An error names a node
/// that its graph lacks, or a pin that contradicts another pin or a veto.
Status TakeAdvice(const Listing& before, const Listing& after, const DiffOptions& options,
                  Matching& matching);

}  // namespace strata
