#pragma once
#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "passes/compile/kernel.h"

namespace strata {

/// Makes the kernel of a fused node's body; `exact`: bitwise equal to ATen. `sizes` gives the
/// symbols their numbers; unbacked symbols get theirs when the kernel runs (unbacked_symbols).
/// Errors (kUnsupported): a body outside of the fusible operators. passes/compile/fuse.h makes no
/// such body, but a dynamic size may have values that the kernel excludes (sums of a single row).
Result<Kernel> MakeKernel(const Graph& body, bool exact = false, const SymbolSizes& sizes = {});

}  // namespace strata
