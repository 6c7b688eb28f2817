#pragma once
#include "ir/rewriter.h"

namespace strata {

/// Random values that depend on no other value but its shape are made from that shape, so that no
/// rank gathers the other value:
///
///   before  noise = empty_like(x)       mask = bernoulli(x, 0.9)
///           mask = bernoulli_(noise, 0.9)
///   after   noise = empty([8, 64])      empty = empty([8, 64])
///           mask = bernoulli_(noise, 0.9)   mask = bernoulli_(empty, 0.9)
///
/// `rand`, `randn` and those of the shape of another value become the operators in place that ATen
/// makes of them, which draw the same numbers; `native_dropout` of CPUs becomes such a mask and two
/// products. Values of dynamic shape stay.
void MakeRandomOfSizes(Rewriter& rewriter);

}  // namespace strata
