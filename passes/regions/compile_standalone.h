#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Makes one node of each whole graph, which is then compiled as a unit.
///
///   before  x y unused  a = add(x, y)  b = mul(a, 2)  output(b)
///   after   x y unused  standalone_0 = attr standalone_0(graph(1))
///           (b,) = strata.fused(standalone_0, x, y, region=True)  output(b)
///
/// The body has the inputs that the graph reads, the graph keeps all. Its nodes keep their order;
/// `reorder-for-peak` before this pass gives them one with a lower peak. Results are bitwise equal.
///
/// Not made: of a graph with writes, random numbers, effects or collectives, and of one whose sizes
/// are symbols. An optimizer stays as it is.
/// Source: torchtitan graph_trainer `standalone_inductor_compilation_pass`.
class CompileStandalone final : public Pass {
 public:
  static constexpr std::string_view kSummary = "make each whole graph one node";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
