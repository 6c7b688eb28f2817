#pragma once
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "prove/values/call.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// The dimensions of argument `position`, or of the keyword `dim`, counted from the front; all:
/// none are given. Errors: out of range.
Result<Sizes> DimsAt(const Call& call, const Tensor& a, size_t position);

/// How many elements each element of a reduction over `dims` is made of.
int64_t CountOver(const Tensor& a, const Sizes& dims);

}  // namespace strata::prove
