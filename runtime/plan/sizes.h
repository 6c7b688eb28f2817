#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/result.h"

namespace strata {

/// What the symbols of a graph are, by name: `s0` is 4.
using SymbolSizes = std::map<std::string, int64_t, std::less<>>;

/// The number that `dim` is. Errors (kUnsupported): a symbol that `sizes` does not tell, a function
/// that is no arithmetic.
Result<int64_t> NumberOf(const Module& module, DimId dim, const SymbolSizes& sizes);
Result<std::vector<int64_t>> NumbersOf(const Module& module, std::span<const DimId> dims,
                                       const SymbolSizes& sizes);

/// True if the types of the inputs have symbols.
bool HasOpenSizes(const Graph& graph);

/// The symbols' hints: sizes that the graph was traced for.
SymbolSizes HintsOf(const Graph& graph);

/// What the symbols must be for inputs of these shapes, one per placeholder in order. Only sizes
/// that are a symbol, or a multiple of one, tell; the others are for who checks the inputs.
///
/// Errors: a size that is no multiple, or beyond the range of its symbol; two that contradict each
/// other. They name the input.
Result<SymbolSizes> SizesOfInputs(const Graph& graph, std::span<const std::vector<int64_t>> shapes);

}  // namespace strata
