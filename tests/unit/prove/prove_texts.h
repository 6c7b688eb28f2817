#pragma once
#include <string_view>

#include "prove/proof.h"
#include "tests/support/graphs.h"

namespace strata::prove {

/// The proof of two graphs of their own, compared by their outputs: bodies in native text.
inline Proof ProveTexts(std::string_view before, std::string_view after) {
  const auto a = testing::ParseBody(before), b = testing::ParseBody(after);
  return Prove(*a->FindGraph("g"), *b->FindGraph("g"), {});
}

}  // namespace strata::prove
