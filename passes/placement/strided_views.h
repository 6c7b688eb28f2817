#pragma once
#include "ir/rewriter.h"

namespace strata {

/// Views by strides, as autograd takes them of gradients of what was written in place, become views
/// by dimensions, of which each rank can take its part:
///
///   before  y = as_strided(x, [4, 3], [6, 1], 2)     x : [4, 6][6, 1]
///   after   y = slice(x, 1, 2, 5)
///
/// The new ones are a permutation to the order in memory, a view, slices, selections, and a
/// permutation back, as far as they are needed. Memory of given strides (`new_empty_strided`) is
/// the permutation of a contiguous tensor. What needs other views stays, and so do dynamic shapes.
void MakeViewsOfStrides(Rewriter& rewriter);

}  // namespace strata
