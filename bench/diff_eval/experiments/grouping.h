#pragma once
#include <cstdint>

#include "base/result.h"

namespace strata::bench {

/// Applies one mutation to most layers of a transformer and another one to the others, compares
/// without names, and prints how well patterns group the nodes of each mutation (adjusted Rand
/// index), and how many of the layers that were left out are named: with module paths and without.
Status EvaluateGrouping(uint32_t first_seed, uint32_t num_seeds, bool verbose);

}  // namespace strata::bench
