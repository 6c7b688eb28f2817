#pragma once
#include <cstdint>

#include "runtime/plan/plan.h"

namespace strata {

/// Bytes that a step's operator allocates beside its results and gives back before it returns:
/// WorkspaceBytes (runtime/plan/memory/workspace.h), and for matrix products and attention of bf16
/// and f16 what oneDNN takes for them, which depends on processor, sizes and threads, for
/// convolutions the same whatever their type, and for sorts the indices that they begin with. That
/// is measured, by the operator on zeros that lie as its operands do, once per process for each
/// layout.
int64_t MeasuredWorkspaceBytes(const Plan& plan, const PlanStep& step);

}  // namespace strata
