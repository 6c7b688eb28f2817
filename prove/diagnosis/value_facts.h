#pragma once
#include <span>
#include <string>

#include "passes/placement/mesh.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// What a value and the expected one say of each other, on each rank. Without a mesh there is one.
struct ValueFacts {
  bool is_undefined = false;   ///< elements that were never written, or are in flight
  std::string factor;          ///< "1/2": the value is that part of the expected one, everywhere
  std::string summand_of;      ///< the axis over which ranks' values sum up to the expected ones
  std::string factor_of;       ///< the axis whose size the factor, or its inverse, is
  std::string first_part_of;   ///< axes whose ranks all have what the first one should have
  bool is_other_rank = false;  ///< each rank has what another one should have
  bool is_permuted = false;    ///< ranks have the expected elements in another order
  bool has_other_sizes = false;
};
ValueFacts FactsOf(std::span<const Tensor> expected, std::span<const Tensor> actual,
                   const Mesh& mesh);

}  // namespace strata::prove
