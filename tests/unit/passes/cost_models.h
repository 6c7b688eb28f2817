#pragma once
#include <string_view>

#include "passes/placement/costs/collective_cost.h"
#include "passes/placement/costs/placement_cost.h"
#include "tests/support/graphs.h"

namespace strata::testing {

inline constexpr auto kGather = CollectiveOp::kAllGather, kReduce = CollectiveOp::kAllReduce,
                      kScatter = CollectiveOp::kReduceScatter, kExchange = CollectiveOp::kAllToAll;

inline Topology H100() {
  return OrDie(Topology::Load("h100"));
}

/// What placements cost on H100 GPUs in this mesh.
inline CostModel ModelOn(std::string_view mesh) {
  return OrDie(CostModel::Make(H100(), OrDie(Mesh::Parse(mesh))));
}

}  // namespace strata::testing
