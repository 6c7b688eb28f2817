#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"

namespace strata {

/// Names a call by where it stands, so that it keeps its name when other modules change: it is the
/// `index`-th call of `op` in a phase of a module, from 0.
struct NodeKey {
  std::string module;  ///< "layers.3.attention.wq"; empty: outside of modules
  Phase phase = Phase::kUnknown;
  std::string op;  ///< "aten.mm.default"
  int64_t index = 0;
};

/// The keys of all calls of `graph`.
std::map<NodeId, NodeKey> NodeKeysOf(const Graph& graph);

}  // namespace strata
