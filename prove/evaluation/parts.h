#pragma once
#include <cstdint>
#include <span>

#include "ir/module.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// Part `index` of `parts` of a dimension, as a view. REQUIRES: the parts divide it.
Tensor Chunk(const Tensor& tensor, int64_t dim, int64_t index, int64_t parts);

/// The same where the parts may not divide it: of equal sizes, with zeros at the end of the last
/// ones.
Tensor PaddedChunk(const Tensor& tensor, int64_t dim, int64_t index, int64_t parts);

/// The part of a whole tensor that a rank holds, with zeros after it where ranks do not divide a
/// dimension. Partial axes hold the whole. REQUIRES: no parts of blocks, no rows by token or
/// expert.
Tensor LocalPart(const Tensor& whole, std::span<const Placement> placements, const Mesh& mesh,
                 int64_t rank);

/// Whether what ranks hold by placements is compared with the whole: of partial values sums and
/// means, or else norms, by their squares. Rows in the order of experts, and parts of blocks, are
/// not slices of the whole.
bool AreComparable(const Module& module, std::span<const Placement> placements);

/// Whether ranks hold norms, whose squares add up to that of the norm of the whole.
bool AreNorms(const Module& module, std::span<const Placement> placements);

}  // namespace strata::prove
