#pragma once
#include <cstdint>
#include <optional>

#include "prove/values/tensor.h"

namespace strata::prove {

/// Overwrites some labels with `ignored`, so that no two ranks that share the tensor evenly along
/// one or two dimensions have equally many: a mean over a rank's own labels is then another one
/// than the mean over all. The first and the last label along each dimension are not all ignored.
/// With a `rank`, the tensor is its own, and other ranks ignore other
/// numbers of theirs. As far as sizes allow it. REQUIRES: integers of memory of their own.
void IgnoreLabels(const Tensor& labels, int64_t ignored, uint64_t key, std::optional<int64_t> rank);

}  // namespace strata::prove
