#pragma once
#include <span>

#include "ir/graph.h"
#include "prove/values/call.h"

namespace strata::prove {

/// The integer of a type that stands for `word`, as PyTorch stores it: the low bits of a narrow
/// type, 1 of each truth value that is not 0.
uint64_t StoredAs(DType dtype, uint64_t word);

/// Stores the results of a node as their types do. Definitions compute with 64 bits.
void StoreIntegers(const Graph& graph, NodeId node, std::span<Value> results);

}  // namespace strata::prove
