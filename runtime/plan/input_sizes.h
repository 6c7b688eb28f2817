#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"

namespace strata {

/// True if the types of the inputs have symbols.
bool HasDynamicShapes(const Graph& graph);

/// The symbols' hints: sizes that the graph was traced for.
SymbolSizes HintsOf(const Graph& graph);

/// What the symbols must be for inputs of these shapes, one per placeholder in order. Only sizes
/// that are a symbol, or a multiple of one, are used; the caller checks the others.
///
/// Errors: a size that is not a multiple, or beyond the range of its symbol; two that contradict
/// each other. They name the input.
Result<SymbolSizes> SizesOfInputs(const Graph& graph, std::span<const std::vector<int64_t>> shapes);

}  // namespace strata
