#pragma once
#include <cstdint>

#include "passes/placement/costs/topology.h"

namespace strata {

enum class CollectiveOp : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll };

/// Time of a collective of the ranks of one axis, in µs. `bytes`: of the result of an all-gather,
/// of the operand of one rank otherwise.
/// Source: NCCL's tuning model (2.25 to 2.27), with points and corrections measured by nccl-tests
/// on H100, as collected by meta-pytorch/autoparallel.
double CollectiveUs(const NetworkSpec& network, CollectiveOp collective, double bytes,
                    const AxisTopology& axis);

}  // namespace strata
