#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/slots.h"
#include "runtime/train/programs/training_graphs.h"

namespace strata {

/// The positions of a graph's inputs, by their names.
std::map<std::string, size_t> InputPositions(const Graph& graph);

/// A graph, with its slots' numbers: positions in lists of tensors.
struct StageGraph {
  std::string name;
  std::vector<std::pair<StageSlot::Kind, size_t>> inputs, outputs;
};

/// The graphs of a stage.
struct StageGraphs {
  StageGraph forward, backward, accumulate;
  StageGraph input, weight;    ///< without names: the backward is not split
  StageGraph validate;         ///< without a name: there is no validation
  StageGraph unshard, reduce;  ///< without names: the other graphs do this for each microbatch
};

/// A parameter that stages of other ranks than its own read.
struct SharedParameter {
  size_t input = 0;  ///< of the step
  std::string name;
  int64_t owner = 0;
  std::set<int64_t> readers = {};  ///< without the owner
};

/// What the graphs of a rank's stages read and return.
struct BoundStages {
  std::map<std::string, size_t> input_index, gradient_index;  ///< of the step, by name
  size_t num_extras = 0;                                      ///< further outputs of the step
  std::map<int64_t, StageGraphs> stages;                      ///< of this rank
  std::vector<SharedParameter> shared;  ///< of all ranks, in the order of the inputs
  std::set<std::string> overlaps;       ///< graphs
};

/// Of the rank `rank`, which runs `program`. Errors: a module that the passes of pipelines did not
/// cut.
Result<BoundStages> BindStages(const TracedTraining& traced, std::span<const int64_t> rank_of_stage,
                               int64_t rank, std::span<const Action> program);

}  // namespace strata
