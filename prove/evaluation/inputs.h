#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "ir/module.h"
#include "prove/values/call.h"

namespace strata::prove {

/// A random value of a type. Integers are small. Errors: a type or size that is not known, or more
/// elements than a proof evaluates.
Result<Value> RandomValue(const Module& module, TypeId type, uint64_t key);

/// Numbers that are neither 0 nor codes, functions of `key`. REQUIRES: the domain is not kInteger.
Tensor RandomNumbers(Domain domain, Sizes sizes, uint64_t key);

/// Truth values, functions of `key`: those of RandomValue.
Tensor RandomTruths(Sizes sizes, uint64_t key);

/// A random value of an input, the same for the same seed, name and type. `rank`, errors: as for
/// MakeInputs.
Result<Value> MakeInput(const Graph& graph, NodeId placeholder, uint64_t seed,
                        std::optional<int64_t> rank = {});

/// Errors: the graph is too large to evaluate on that number of ranks.
Status CheckWork(const Graph& graph, int64_t num_ranks);

}  // namespace strata::prove
