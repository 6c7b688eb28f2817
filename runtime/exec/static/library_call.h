#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

// Operators of ATen on tensors that stay for all runs: out-variants, which write to the memory of
// their results, and in-place operators.

/// Results that are memory filled with one number: zeros, full, empty_like.
Result<Binding> BindFill(const PlanStep& step, StepId index, BindContext& context);
/// Copies of the first operand, perhaps to another dtype or shape: clone, _to_copy, reshape.
Result<Binding> BindCopy(const PlanStep& step, StepId index, BindContext& context);
/// embedding_dense_backward, which has no out-variant: index_add_ into rows of zeros. Both add over
/// the tokens in their order.
Result<Binding> BindEmbeddingGradient(const PlanStep& step, StepId index, BindContext& context);
Result<Binding> BindOutVariant(const PlanStep& step, StepId index, BindContext& context);
/// A wait for a collective: its result is the operand's tensor.
Result<Binding> BindWait(const PlanStep& step, StepId index, BindContext& context);
/// An operator that writes to its operands, all of them fixed.
Result<Binding> BindInPlace(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata
