#pragma once
#include <string>
#include <vector>

#include "base/id.h"
#include "diff/model/graph_diff.h"
#include "store/node_statistics.h"

namespace strata::cli {

/// What the nodes of one side of a diff cost in a step.
struct SideCosts {
  IdVector<EntityId, double> us, bytes;
  double rest_us = 0;  ///< of no node that is known
};
SideCosts CostsOf(const Listing& listing, const StatisticsTable& table);

/// How the cost of a part of two graphs changed.
struct CostChange {
  std::string what,
      where;  ///< title of a pattern and its places; a module; a node and its operator
  int64_t places = 1;
  double us = 0, bytes = 0;  ///< after less before
};

/// How costs changed between two graphs. Each list: most changed time first, without changes of 0.
struct CostDiff {
  double us_before = 0, us_after = 0, bytes_before = 0, bytes_after = 0;
  /// By pattern, single change, and what runs the same nodes in another time.
  std::vector<CostChange> patterns;
  std::vector<CostChange> modules, nodes;
};
CostDiff DiffCosts(const GraphDiff& diff, const SideCosts& before, const SideCosts& after);

/// The first `shown` rows of each list.
std::string CostText(const CostDiff& costs, size_t shown);
/// `strata.cost/1` (docs/json.md).
std::string CostJson(const CostDiff& costs, const std::string& before_ref,
                     const std::string& after_ref);

}  // namespace strata::cli
