#include "runtime/train/random_numbers.h"

#include <cstddef>

#include "ir/graph.h"
#include "ir/ops.h"
#include "runtime/aten/generator.h"

namespace strata {

bool DrawsRandomNumbers(const Module& module) {
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const Graph& graph = module.graph(GraphId{static_cast<int32_t>(i)});
    for (const NodeId node : graph.nodes()) {
      if (TraitsOf(graph.op(node)).random) return true;
    }
  }
  return false;
}

void SeedStep(uint64_t seed, int64_t step) {
  // SplitMix64: neighbouring seeds and steps are far apart.
  uint64_t mixed = seed * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(step);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  SeedGenerator(mixed ^ (mixed >> 31));
}

}  // namespace strata
