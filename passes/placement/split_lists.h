#pragma once
#include "ir/rewriter.h"

namespace strata {

/// One call for each tensor of operators that take lists of them, so that ranks can hold each in a
/// way of its own:
///
///   before  (n0, n1) = _foreach_norm([g0, g1], 2.0)     _fused_adamw_([p0, p1], [g0, g1], …, lr=…)
///   after   n0 = linalg_vector_norm(g0, 2.0)            _fused_adamw_([p0], [g0], …, lr=…)
///           n1 = linalg_vector_norm(g1, 2.0)            _fused_adamw_([p1], [g1], …, lr=…)
void SplitLists(Rewriter& rewriter);

}  // namespace strata
