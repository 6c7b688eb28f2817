#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "store/snapshot_pools.h"
#include "store/trace.h"

namespace strata {

/// A snapshot as ids of records.
struct EncodedSnapshot {
  std::string root;              ///< see store/snapshot_format.h
  std::vector<uint32_t> chunks;  ///< of all graphs, in order
  int64_t printed_nodes = 0;
};

/// Turns `graph` and its bodies into records; those that are not in `pools` yet are added.
/// Errors: two nodes have one stable id, arguments are nested beyond reason.
Result<EncodedSnapshot> EncodeSnapshot(const Graph& graph, SnapshotPools& pools);

}  // namespace strata
