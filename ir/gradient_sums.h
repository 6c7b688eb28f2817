#pragma once
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// Of a sum of gradients of one tensor, which autograd makes: "True".
inline constexpr std::string_view kGradientSumAttribute = "is_gradient_acc";

inline bool IsGradientSum(const Graph& graph, NodeId node) {
  return !graph.attribute(node, kGradientSumAttribute).empty();
}

}  // namespace strata
