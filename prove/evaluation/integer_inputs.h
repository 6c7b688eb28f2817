#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// How an integer is used that is a number: operators compute with it and compare it. None of them
/// takes it, or an integer made of it, as an index or a size, or in a way that is not known.
struct NumberUse {
  std::vector<int64_t> literals;  ///< that it meets: bounds and divisors
};

/// None: the value may be an index or a size.
std::optional<NumberUse> NumberUseOf(const Graph& graph, ValueId value);

/// Overwrites the elements with random numbers of the type: small ones, larger ones, negative ones,
/// and those beside the literals. REQUIRES: the tensor is contiguous, of integers.
void FillNumbers(const Tensor& tensor, DType dtype, const NumberUse& use, uint64_t key);

}  // namespace strata::prove
