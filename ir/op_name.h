#pragma once
#include <string_view>

namespace strata {

/// The parts of an operator's name, `aten.add.Tensor`.
struct OpName {
  std::string_view library, base, overload;  // "aten", "add", "Tensor"
  std::string_view qualified;                // "aten.add"
};

/// Without an overload: a function or path of Python.
OpName SplitOpName(std::string_view op);

}  // namespace strata
