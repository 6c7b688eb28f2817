#pragma once
#include <span>
#include <string>
#include <string_view>

#include "passes/compile/kernel.h"

namespace strata {

/// The type in which a kernel computes values of `dtype`: "float" for bf16 too.
std::string_view ComputeType(DType dtype);
/// The type of an element in memory.
std::string_view MemoryType(DType dtype);

/// The expression of an op other than loads and reductions, over its operands' names. The same
/// text is C++ and CUDA; the functions that it calls are in `kCppPreamble` and `kCudaPreamble`.
std::string FormulaText(const Kernel::Op& op, std::span<const std::string> operands);

/// `(float)0.95`, as ATen converts numbers.
std::string NumberText(double number, DType dtype);

}  // namespace strata
