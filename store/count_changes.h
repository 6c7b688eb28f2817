#pragma once
#include "store/snapshot_encoder.h"
#include "store/trace.h"

namespace strata {

/// The changes between two snapshots of one file, found by stable ids.
ChangeCounts CountChanges(const EncodedSnapshot& before, const EncodedSnapshot& after,
                          const SnapshotPools& pools);

}  // namespace strata
