#pragma once
#include <string_view>

#include "ir/graph.h"
#include "passes/core/pass.h"

namespace strata {

/// Labels sums of the gradients of several chunks as `ep-chunk` does. Autograd makes them where a
/// program calls a module once per chunk, and knows nothing of chunks.
/// Linear in the graph.
void LabelChunkSums(Graph& graph);

/// Labels nodes without a label whose operands and users, over nodes without a label, are of one
/// chunk only: they are of its body. Placement and lowering make them, exchanges of tokens above
/// all. Linear in the graph.
/// Source: torchtitan's graph_trainer, where the chunks of a program are labelled after its trace.
class LabelChunks final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "say which chunk the nodes that lowering made within chunks of the program are of";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
