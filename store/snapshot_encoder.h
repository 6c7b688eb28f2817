#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "store/hash.h"
#include "store/pool.h"
#include "store/trace.h"

namespace strata {

/// The pools of a trace that is being written, and what counting changes needs to remember of
/// their records.
struct SnapshotPools {
  PoolWriter strings{TableId::kStringPool};
  PoolWriter types{TableId::kTypePool};
  PoolWriter nodes{TableId::kNodePool};
  PoolWriter chunks{TableId::kChunkPool};

  /// A version of a node.
  struct NodeFacts {
    uint64_t stable_id;
    uint64_t content;  ///< hash of the part that `changed` compares
    uint32_t printed;  ///< nodes that the text shows for it: itself and the elements read from it
  };
  std::vector<NodeFacts> node_facts;  // by id of the record, minus 1 and those forgotten
  const NodeFacts& facts(uint32_t version) const {
    return node_facts[version - nodes.num_forgotten() - 1];
  }
  // Guesses from the snapshot before; 0: absent.
  std::vector<uint32_t> last_versions;             // by stable id
  std::vector<uint32_t> last_strings;              // by id of the module, which may be another one
  std::vector<std::vector<uint32_t>> chunk_nodes;  // the same for chunks

  /// Snapshots may have versions of nodes in common. Where none do, none is looked for.
  bool shares_nodes = true;

  Status Flush(Database& database, Packer& packer);
  /// Later snapshots share no nodes with those until now, and are not compared with them.
  void ForgetNodes();
};

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
