#include "ir/copies.h"

#include <algorithm>
#include <array>

#include "ir/ops.h"

namespace strata {

bool IsPlainCopy(std::string_view op) {
  static constexpr std::array<std::string_view, 4> kCopies = {"alias", "detach", "clone",
                                                              "lift_fresh_copy"};
  return std::ranges::find(kCopies, BaseName(op)) != kCopies.end();
}

}  // namespace strata
