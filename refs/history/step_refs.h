#pragma once
#include "diff/history/history.h"

namespace strata {

/// Sets the REF of every step from those of the snapshots. A REF without a pass names the last
/// snapshot of its graph, so an earlier snapshot takes the REF of an equal one that a pass names.
void SetStepRefs(History& history);

}  // namespace strata
