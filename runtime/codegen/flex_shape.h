#pragma once
#include <string>
#include <string_view>

#include "passes/flex/flex_kernel.h"

namespace strata {

/// The arithmetic of bodies that both languages spell alike; before it stand STRATA_INLINE,
/// strata_abs and strata_floor.
extern const std::string_view kFlexArithmetic;

/// A struct of that name, what algorithms of flex attention are templates over, in C++ and CUDA:
/// sizes and strides of the kernel as constants, and its bodies as functions with STRATA_INLINE.
/// Arguments come as `void* const*`, in the order of FlexKernel; `results` is where results begin.
std::string FlexShape(const FlexKernel& kernel, std::string_view name);

}  // namespace strata
