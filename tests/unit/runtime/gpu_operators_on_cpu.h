#pragma once

namespace strata::testing {

/// Registers, for CPU tensors, the attention and norm operators that ATen has for GPUs only. They
/// compute by the CPU's operators, and require what the kernels of GPUs require of alignment,
/// heads and masks. A second call does nothing.
void RegisterGpuOperatorsOnCpu();

}  // namespace strata::testing
