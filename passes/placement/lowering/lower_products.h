#pragma once
#include "ir/rewriter.h"

namespace strata {

/// Kernels of grouped products read rows that begin at multiples of 16 bytes, and write such ones.
/// Parts of ranks may be narrower: operands of the lowered product `node` are then copied to wider
/// memory, and the type of its result has its strides.
///
///   before  y = _grouped_mm(x, w)                          x: f32[s, 5][5, 1]
///   after   p = constant_pad_nd(x, [0, 3])  v = slice(p)   v: f32[s, 5][8, 1]
///           y = _grouped_mm(v, w)
///
/// Returns whether the result lies in other strides than before.
/// Source: check_valid_strides_and_return_transposed, create_grouped_gemm_output_tensor in ATen.
bool AlignProduct(Rewriter& rewriter, NodeId node);

}  // namespace strata
