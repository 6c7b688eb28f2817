#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"

namespace strata {

/// What symbols are, by name: `s0` is 4.
using SymbolSizes = std::map<std::string, int64_t, std::less<>>;

/// The number that `dim` is. Errors (kUnsupported): a symbol that is not in `sizes`, a function
/// that is not arithmetic.
Result<int64_t> NumberOf(const Module& module, DimId dim, const SymbolSizes& sizes);
Result<std::vector<int64_t>> NumbersOf(const Module& module, std::span<const DimId> dims,
                                       const SymbolSizes& sizes);

/// Sizes that stand for all that the module's symbols can be: what holds for each of them, of
/// expressions that are sums and products, holds for all but a few. Primes within the symbols'
/// ranges, and no two alike where there is room; those of unbacked symbols are like no others. One,
/// empty, for a module without symbols.
std::vector<SymbolSizes> SampleSizes(const Module& module);
/// The same without unbacked symbols, which get their sizes while a graph runs.
std::vector<SymbolSizes> BackedSampleSizes(const Module& module);

/// An expression in the table of another module, with what is known of its symbols.
DimId CopyDim(const Module& from, DimId dim, Module& to);

}  // namespace strata
