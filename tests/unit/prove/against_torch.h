#pragma once
#include <string_view>

namespace strata::prove {

/// Runs a graph with ATen and exactly, on the same small integers, and compares all outputs.
void CheckAgainstTorch(std::string_view body);

/// A call on two inputs `x` and `y` of these types; its result has type `z`.
void CheckCall(std::string_view call, std::string_view x, std::string_view y, std::string_view z);

}  // namespace strata::prove
