#pragma once
#include <cstdint>
#include <set>

#include "ir/graph.h"

namespace strata {

/// Which parameters ranks gather again in backward. The others stay gathered after forward.
/// Source: FSDP2's reshard_after_forward, and what torchtitan gives to it: backward begins with the
/// modules after the last block, and needs no weight of the embedding.
enum class Reshard : uint8_t {
  kNothing,
  kBlocks,  ///< those of blocks, `layers.N`; of a model without blocks, all
  kAll,
};

/// The parameters of a step that stay gathered.
std::set<ValueId> KeptParameters(const Graph& graph, Reshard reshard);

}  // namespace strata
