#pragma once
#include <vector>

#include "ir/graph.h"
#include "passes/compile/fusion_regions.h"

namespace strata {

/// What a region becomes: inputs from outside, results that others read.
struct RegionPlan {
  std::vector<NodeId> members;
  std::vector<ValueId> inputs;
  std::vector<NodeId> outputs;
  GraphId body;
};

/// Writes the nodes of a region as a graph of their own: inputs, members with the views between
/// them, outputs.
void WriteBody(const Graph& graph, const FusionRegions& regions, const RegionPlan& plan,
               Graph& body);

}  // namespace strata
