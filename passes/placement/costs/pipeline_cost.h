#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/costs/recomputation.h"

namespace strata {

/// A step whose layers are cut into stages, each on the ranks of a mesh, by 1F1B (arXiv
/// 2104.04473).
struct PipelineCost {
  double us = 0;
  int64_t microbatches = 1;
  double memory_bytes = 0;  ///< of a rank of the stage that needs the most
  /// By stage, the first layer. The first stage has what comes before the layers, too, the last one
  /// what comes after them.
  std::vector<int64_t> first_layers;
};

/// Of `graph`, the step of one microbatch, which `place` placed on the mesh of `model`:
///
///   µs = the largest of all stages of (microbatches + stages − 1) · its microbatch + its
///   parameters
///
/// Layers are cut so that this is the least. A microbatch is its computation and what its ranks
/// exchange of activations, and the send of what leaves the stage; parameters are gathered, their
/// gradients reduced and the update done once a step. A stage holds its parameters, gradients and
/// averages of the optimizer, and what the microbatches in flight save, at most as many as stages
/// follow. Errors: fewer layers than stages, an operator without a rule.
Result<PipelineCost> CostOfPipeline(Graph& graph, const CostModel& model,
                                    const Recomputation& recomputation, int64_t stages,
                                    int64_t microbatches);

}  // namespace strata
