#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "runtime/exec/graph_run.h"
#include "runtime/files/tensor_io.h"
#include "runtime/ranks/sharding.h"

namespace strata {

/// Whether `lower` wrote the graph and it is whole: parts do not know the types of what they save.
bool HasGlobalTypes(const Graph& graph);

/// Runs a graph that `lower` wrote outside of a training: each rank of its mesh is a thread, and
/// reads its part of the inputs.
class GraphRanks {
 public:
  /// None: the graph runs on one rank.
  /// Errors: a damaged mesh or placement; a part of a lowered graph.
  static Result<std::optional<GraphRanks>> Of(const Graph& graph);

  const Mesh& mesh() const { return mesh_; }

  /// What each rank reads of whole inputs, by their names. What is not an input of the graph, as
  /// its constants, all ranks read. Errors: an input that is missing or has other sizes.
  Result<std::vector<NamedTensors>> Share(const NamedTensors& whole) const;
  /// Synthetic inputs, as DrawInputs: ranks that hold the same part of an input read the same.
  Result<std::vector<NamedTensors>> Draw(uint64_t seed) const;

  /// Runs the graph; `inputs`: by rank. As RunGraph, of wholes that the parts of the ranks make.
  /// `threads`: inside operators, of each rank.
  Result<GraphRun> Run(const std::vector<NamedTensors>& inputs, int threads = 1) const;

 private:
  GraphRanks(const Graph& graph, Mesh mesh) : graph_(&graph), mesh_(std::move(mesh)) {}

  const Graph* graph_;
  Mesh mesh_;
  std::vector<std::pair<std::string, Sharding>> inputs_;  // by InputName, as a run has them
  std::vector<std::optional<Sharding>> outputs_;          // as a run has them; none: None
};

}  // namespace strata
