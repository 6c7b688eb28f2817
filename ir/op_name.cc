#include "ir/op_name.h"

#include <cstddef>

namespace strata {

OpName SplitOpName(std::string_view op) {
  const size_t dot = op.find('.');
  if (dot == std::string_view::npos) return {{}, op, {}, op};
  OpName name{op.substr(0, dot), op.substr(dot + 1), {}, op};
  // Only operator libraries have overloads: `torch._C._set_grad_enabled` is a path.
  if (name.library == "torch") return name;
  if (const size_t second = name.base.find('.'); second != std::string_view::npos) {
    name.overload = name.base.substr(second + 1);
    name.base = name.base.substr(0, second);
    name.qualified = op.substr(0, dot + 1 + second);
  }
  return name;
}

}  // namespace strata
