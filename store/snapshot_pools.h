#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/database/pool.h"

namespace strata {

/// The pools of a trace that is being written, and what counting changes needs to remember of
/// their records.
struct SnapshotPools {
  PoolWriter strings{TableId::kStringPool};
  PoolWriter types{TableId::kTypePool};
  PoolWriter nodes{TableId::kNodePool};
  PoolWriter chunks{TableId::kChunkPool};

  /// A version of a node. Elements of a tuple that the text shows are nodes with facts of their
  /// own.
  struct NodeFacts {
    uint64_t stable_id;
    uint64_t content;        ///< hash of the part that `changed` compares, but for placements
    uint64_t placements;     ///< hash of those of its results; 0: there are none
    uint32_t first_element;  ///< of `element_facts`
    uint32_t printed;        ///< nodes that the text shows for it: itself and its elements
  };
  struct ElementFacts {
    uint32_t result;  ///< index among the results of its node
    uint64_t content, placements;
  };
  // Of snapshots that share nodes, by id of the record, minus 1 and those forgotten.
  std::vector<NodeFacts> node_facts;
  std::vector<ElementFacts> element_facts;
  const NodeFacts& facts(uint32_t version) const {
    return node_facts[version - nodes.num_forgotten() - 1];
  }
  std::span<const ElementFacts> elements(const NodeFacts& node) const {
    return std::span(element_facts).subspan(node.first_element, node.printed - 1);
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

}  // namespace strata
