#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Why a node cannot be part of a captured device graph; none when it can. `capability`: of the
/// GPU, 9.0 for an H100.
///
/// No copies between devices unless the host's side is pinned, no grouped product that may read its
/// offsets on the host, nothing that reads a value, nothing of symbolic size, nothing on the CPU
/// alone. Source: torchtitan graph_trainer `is_cudagraphable`.
std::optional<std::string> CudaGraphObstacle(const Graph& graph, NodeId node, double capability);

/// Marks graphs that a device graph can hold whole: attribute `cuda_graph=full` of their outputs.
///
///   before  …  output([loss])
///   after   …  output([loss]) {cuda_graph=full}
///
/// What keeps a graph from it is the attribute `no_cuda_graph` of its output: the first obstacle.
/// Some obstacles are guesses: on an H100 grouped products were captured and gave the same bits.
///
/// With `pieces`, such a graph is captured in pieces, `cuda_graph=pieces`: nodes that run between
/// two device graphs have the attribute `cuda_graph=outside` (capture_pieces.h).
class CudaGraph final : public Pass {
 public:
  struct Options {
    double capability = 9.0;
    bool force = false;
    bool pieces = false;
    int64_t min_nodes = 1;
    void Bind(OptionList& list) {
      list.Add("capability", capability, "compute capability of the GPU");
      list.Add("force", force, "mark all graphs, also those with obstacles");
      list.Add("pieces", pieces, "capture graphs with obstacles in pieces between them");
      list.AddCount("min_nodes", min_nodes, "nodes that compute in the smallest piece");
    }
  };
  static constexpr std::string_view kSummary = "mark graphs that can be captured and replayed";

  CudaGraph() = default;
  explicit CudaGraph(const Options& options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
