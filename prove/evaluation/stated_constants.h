#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// What attributes hold: tensors, or numbers that all of their elements are.
using ConstantNumbers = std::map<std::string, Tensor, std::less<>>;

/// Adds the constants of `before` that `after` has as literals (ir/stated_constants.h). Returns
/// what a proof takes for granted then: that the compiler read the right numbers is not proven.
std::vector<std::string> AddStatedConstants(const Graph& before, const Graph& after,
                                            ConstantNumbers& constants);

}  // namespace strata::prove
