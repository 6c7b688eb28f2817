#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"

namespace strata {

/// The placeholders that take tensors. The others are integers, which follow from sizes.
std::vector<NodeId> GivenInputs(const Graph& graph);

/// The number that a value is: an integer of the program whose symbols have `sizes`. None: it
/// depends on data, or is not an integer.
std::optional<int64_t> IntegerOf(const Graph& graph, ValueId value, const SymbolSizes& sizes);

/// True if the types of the inputs have symbols.
bool HasDynamicShapes(const Graph& graph);

/// The symbols' hints: sizes that the graph was traced for.
SymbolSizes HintsOf(const Graph& graph);

/// A number for each symbol of the inputs: its hint, or one in its range.
SymbolSizes DrawSizes(const Graph& graph);

/// What the symbols must be for inputs of these shapes, in the order of GivenInputs. Only sizes
/// that are a symbol, or a multiple of one, are used; the caller checks the others.
///
/// Errors: a size that is not a multiple, or beyond the range of its symbol; two that contradict
/// each other. They name the input.
Result<SymbolSizes> SizesOfInputs(const Graph& graph, std::span<const std::vector<int64_t>> shapes);

}  // namespace strata
