#pragma once
#include <cstdint>

#include "runtime/plan/plan.h"

namespace strata {

/// Bytes that a step's operator allocates beside its results and gives back before it returns, on a
/// CPU with `threads` threads inside operators: what LibTorch 2.11's kernels do.
///
/// Attention of floats: blocks of scores of each thread; of its gradient also a copy of a grad_out
/// that does not lie as [batch, seq, heads, dim]. Elementwise operators: operands of another type
/// than they compute in, cast. Sums and means: an operand of another type than the result, cast.
///
/// Others allocate nothing, or next to nothing beside what they read and write.
/// Sources: aten/src/ATen/native/cpu/FlashAttentionKernel.cpp, aten/src/ATen/TensorIterator.cpp.
int64_t WorkspaceBytes(const Plan& plan, const PlanStep& step, int threads);

}  // namespace strata
