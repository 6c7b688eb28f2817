#pragma once
#include "ir/rewriter.h"
#include "passes/comm/bucket_plan.h"

namespace strata {

/// Moves buckets (nodes with `kBucketAttribute`) so that they run beside the computation:
///
/// - The wait for a reduction, with what reads it, moves behind the launch of the next reduction of
///   its kind, unless a reader reads other values, too.
/// - The all-gather that follows the wait of another one, in the same direction, is launched before
///   that wait. The first one of a direction is launched before the first product in the modules of
///   `plan`, unless that reads it.
///
/// Returns whether a node moved. Linear in the graph.
/// Source: OverlapScheduler of torchtitan's joint transformer block pass.
bool PrefetchBuckets(Rewriter& rewriter, const BucketPlan& plan);

}  // namespace strata
