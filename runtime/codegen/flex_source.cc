#include "runtime/codegen/flex_source.h"

#include <fmt/format.h>

#include "runtime/codegen/flex_shape.h"

namespace strata {

std::string FlexFunction(const FlexKernel& kernel, std::string_view name) {
  constexpr std::string_view kAlgorithms[] = {"forward", "backward", "block_mask"};
  const std::string shape = fmt::format("{}_shape", name);
  return fmt::format(
      "{}extern \"C\" void {}(void* const* arguments, int64_t begin, int64_t end, const int64_t*) "
      "{{\n  strata_flex_{}<{}>(arguments, begin, end);\n}}\n",
      FlexShape(kernel, shape), name, kAlgorithms[static_cast<size_t>(kernel.kind)], shape);
}

}  // namespace strata
