#pragma once
#include <string_view>

namespace strata {

/// Whether an operator returns the elements of its only operand: `clone`, `detach`, `alias`, or
/// `lift_fresh_copy` of a constant.
bool IsPlainCopy(std::string_view op);

}  // namespace strata
