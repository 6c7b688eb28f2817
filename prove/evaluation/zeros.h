#pragma once
#include <cstdint>
#include <span>

#include "ir/graph.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Whether a node asks of floating-point numbers whether they are 0: `x == 0`, `x.bool()`,
/// `any(x)`. Random numbers are not.
bool AsksForZeros(const Graph& graph);

/// Makes a quarter of the floating-point numbers 0.
void PutZeros(std::span<Value> inputs, uint64_t seed);

}  // namespace strata::prove
