#pragma once
#include "base/result.h"
#include "passes/expert/chunk_context.h"
#include "passes/expert/chunk_regions.h"
#include "passes/expert/gradient_boundaries.h"

namespace strata {

/// Runs a region once per chunk:
///
///   before  y = mm(x, w)   z = relu(y)                       x: f32[s0, 3]
///   after   (x0, x1) = split_with_sizes(x, [s0//2, s0//2], 0)
///           y0 = mm(x0, w)   y1 = mm(x1, w)   z0 = relu(y0)   z1 = relu(y1)
///           z_full = cat([z0, z1], 0)
///
/// The nodes of the region become chunk 0, with their identity; the other chunks are copies.
/// Operands with a chunked dimension are split; the others are shared. What a later region of the
/// same root reads goes to it chunk by chunk (`context.copies`); everything else reads the whole:
/// a concatenation, or a sum where that is proven. Memory that the region writes and does not make
/// is written by one chunk after the other.
///
/// `region` is one of `plan`, and no region before it in `plan` of the same direction is left.
/// Errors: docs/expert.md lists what cannot be cut.
Status LowerRegion(ChunkContext& context, const ChunkPlan& plan, const ChunkRegion& region,
                   const GradientBoundaries& gradients);

}  // namespace strata
