#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// The collectives of one kind that the graph of one rank launches.
struct CollectiveUse {
  Phase phase = Phase::kUnknown;
  std::string group;  ///< axes of the mesh: "fsdp"
  std::string op;     ///< "all_gather_into_tensor"
  int64_t count = 0;
  /// What a rank gives or gets, as ExpectedSizes::CollectiveBytes counts it.
  int64_t bytes = 0;
};

/// By phase, group and operator. Data-dependent sizes count as ExpectedSizes says.
std::vector<CollectiveUse> CollectiveUses(const Graph& graph);

}  // namespace strata
