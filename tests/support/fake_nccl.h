#pragma once
#include "runtime/comm/nccl_api.h"

namespace strata::testing {

/// NCCL between threads that are ranks, on the memory of the CPU: collectives are done when the
/// function returns. As the real one, a rank waits without end for members that do not come or call
/// another collective, until its communicator is aborted. Sums add in the order of the ranks.
const NcclApi& FakeNccl();

}  // namespace strata::testing
