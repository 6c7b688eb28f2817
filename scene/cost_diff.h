#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "diff/model/graph_diff.h"
#include "store/node_statistics.h"

namespace strata {

/// What the nodes of one side of a diff cost in a step.
struct SideCosts {
  IdVector<EntityId, double> us;
  IdVector<EntityId, double> bytes;  ///< read and written, from shapes
  IdVector<EntityId, double> peak;   ///< bytes that live at the peak of the graph (scene/memory.h)
  IdVector<EntityId, std::string> pass;  ///< that made the node, "" none; empty: not known
  double rest_us = 0;                    ///< of no node that is known
};
/// Without `pass`. REQUIRES: the nodes of `table` are those of the listing, by StableId.
SideCosts CostsOf(const Listing& listing, const StatisticsTable& table);

/// How the cost of a part of two graphs changed.
struct CostChange {
  std::string what,
      where;  ///< title of a pattern and its places; a module; a pass; a node and its operator
  int64_t places = 1;
  double us = 0, bytes = 0, peak = 0;  ///< after less before
};

/// Whether nothing changed, or less than half a nanosecond.
bool IsNone(const CostChange& change);

/// How costs changed between two graphs. Each list: most changed time first, without changes of 0.
/// The changes of `modules`, `passes` and `nodes` add up to those of the graphs.
struct CostDiff {
  double us_before = 0, us_after = 0, bytes_before = 0, bytes_after = 0;
  double peak_before = 0, peak_after = 0;
  /// By pattern, single change, and what runs the same nodes in another time.
  std::vector<CostChange> patterns;
  std::vector<CostChange> modules;
  std::vector<CostChange> passes;  ///< that made the nodes; empty: no pass is known
  std::vector<CostChange> nodes;
};
/// What the nodes of both sides of a diff cost, and how that changed.
struct CostComparison {
  SideCosts before, after;
  bool has_times = false;  ///< false: all times are 0, the rest follows from shapes
  CostDiff changes;
};

CostDiff DiffCosts(const GraphDiff& diff, const SideCosts& before, const SideCosts& after);
/// The costs of a diff that follow from shapes: no times, and no passes that made the nodes.
CostComparison ShapeCosts(const GraphDiff& diff);

}  // namespace strata
