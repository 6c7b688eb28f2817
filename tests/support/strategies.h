#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/module.h"

namespace strata::testing {

/// A strategy of a sharding rule on two ranks by the texts of its placements, which hold in every
/// module.
struct TextStrategy {
  std::vector<std::string> operands, results;

  std::string Text() const;  ///< "S(0) R to P(sum)"
};

/// The call that makes the first output of graph `g`, of which the output may be an element.
NodeId CallOf(const Graph& graph);

/// Every strategy of the call's rule with replicated operands, and with each of them partial.
/// `body`: as ParseBody.
std::vector<TextStrategy> AllStrategies(std::string_view body);

/// The graph with one strategy: operands are given from replicas, results that are outputs become
/// replicas again.
std::unique_ptr<Module> PlacedBy(std::string_view body, const TextStrategy& strategy);

}  // namespace strata::testing
