#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/module.h"
#include "ir/symbol_sizes.h"
#include "passes/compile/kernel.h"
#include "runtime/plan/plan.h"

// How the values of a graph lie when it runs as a plan.

namespace strata {

/// The slots that sizes are read into from data, by symbol.
using UnbackedSizes = std::map<std::string, SlotId, std::less<>>;

/// How a value of that type lies where symbols are what `sizes` says. None: no tensor, strides that
/// are not known, a symbol that is not in `sizes`.
std::optional<PlanLayout> LayoutOf(const Module& module, TypeId type, const SymbolSizes& sizes);

/// The same of a type with sizes of `unbacked_sizes`, as functions of them. None: it has none of
/// them, or numbers other than sums of multiples of them.
std::optional<DynamicLayout> DynamicLayoutOf(const Module& module, TypeId type,
                                             const SymbolSizes& sizes,
                                             const UnbackedSizes& unbacked_sizes);

/// Maps the symbols of a fused node's body to `unbacked_sizes` of the graph around it, by the types
/// of its operands.
UnbackedSizes UnbackedSizesInside(const Graph& graph, NodeId fused, const Graph& body,
                                  const UnbackedSizes& unbacked_sizes);

/// The dynamic numbers of a kernel as functions of data-dependent sizes, by slot. None: a size is
/// not among those of `inside`, which are the body's.
std::optional<std::vector<SizeForm>> DynamicNumbersOf(const Kernel& kernel,
                                                      const UnbackedSizes& inside);

}  // namespace strata
