#include "prove/diagnosis/bug.h"

#include <array>

namespace strata::prove {

std::string_view ToString(BugKind kind) {
  constexpr std::array<std::string_view, 24> kNames = {"other",
                                                       "missing-collective",
                                                       "extra-collective",
                                                       "wrong-group",
                                                       "wrong-reduction",
                                                       "partial-operand",
                                                       "wrong-dim",
                                                       "wrong-offset",
                                                       "exchanged",
                                                       "missing-operation",
                                                       "wrong-operation",
                                                       "literal",
                                                       "wrong-factor",
                                                       "in-flight",
                                                       "unwritten",
                                                       "invalid-operation",
                                                       "contract",
                                                       "permuted",
                                                       "some-ranks",
                                                       "extra-operation",
                                                       "overwritten",
                                                       "precision",
                                                       "order",
                                                       "wrong-mask"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace strata::prove
