#pragma once
#include <span>
#include <string>
#include <string_view>

#include "passes/compile/kernel.h"

namespace strata {

/// What every generated C++ file begins with: types, and functions that compilers vectorise.
extern const std::string_view kCppPreamble;

/// The C++ function of a kernel:
///
///   extern "C" void NAME(void* const* arguments, int64_t begin, int64_t end, const int64_t* open)
///
/// computes units [begin, end) of its schedule. Arguments are addresses of first elements, in the
/// order of Kernel::Access::argument; `open` is Kernel::dynamic_numbers. Same kernel, same text,
/// and the same for kernels that differ in dynamic numbers alone.
std::string CppFunction(const Kernel& kernel, std::string_view name);

/// A file with a function `strata_kernel_<i>` for each kernel.
std::string CppSource(std::span<const Kernel> kernels);

}  // namespace strata
