#pragma once
#include <memory>
#include <string_view>

#include "base/result.h"
#include "ir/module.h"
#include "store/database/pool.h"

namespace strata {

/// What a snapshot is read from.
struct SnapshotSources {
  RecordSource& roots;
  RecordSource& strings;
  RecordSource& types;
  RecordSource& nodes;
  RecordSource& chunks;
};

/// Makes the graph and its bodies from the record `root` (store/snapshot_format.h). Any
/// bytes give a graph or an error: what is read is checked before it reaches Rewriter.
Result<std::unique_ptr<Module>> DecodeSnapshot(uint32_t root, SnapshotSources sources);

}  // namespace strata
