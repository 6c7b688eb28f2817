#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// The compiled kernel of a fused node. With operands of fixed layout, addresses are known before a
/// run; otherwise (dynamic_kernel.h) they are looked up in it.
///
/// Errors: the kernel was not built, a value has no known layout.
Result<Binding> BindFusedKernel(const PlanStep& step, StepId index, BindContext& context);

/// Executes units of a kernel, which are shared between threads where that pays.
void RunKernelUnits(KernelLibrary::Function function, void* const* addresses, int64_t units,
                    int64_t unit_elements, const int64_t* dynamic_numbers);

}  // namespace strata
