#include "store/snapshot_pools.h"

namespace strata {

Status SnapshotPools::Flush(Database& database, Packer& packer) {
  for (PoolWriter* pool : {&strings, &types, &nodes, &chunks})
    STRATA_RETURN_IF_ERROR(pool->Flush(database, packer));
  return Ok();
}

void SnapshotPools::ForgetNodes() {
  nodes.Forget();
  chunks.Forget();
  node_facts.clear();
  element_facts.clear();
  chunk_nodes.clear();
}

}  // namespace strata
