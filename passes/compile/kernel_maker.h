#pragma once
#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "passes/compile/kernel.h"

namespace strata {

/// The kernel of a fused node's body for the sizes that `sizes` says, and no others. Errors: as
/// MakeKernel.
Result<Kernel> MakeFixedKernel(const Graph& body, bool exact, const SymbolSizes& sizes);

}  // namespace strata
