#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// Bytes that a graph holds while it runs in program order, estimated from shapes: what lives from
/// its node to the last one that reads it or a view of it. Inputs and constants live throughout,
/// what the graph returns lives to the end. Copies in memory of the host count as nothing. No
/// fragmentation, no workspaces, no bodies.
struct MemoryProfile {
  std::vector<int64_t> live;  ///< after each node, in program order
  int64_t inputs = 0;         ///< of inputs and constants; part of every entry of `live`
  int64_t peak = 0;
  int32_t peak_at = -1;  ///< index into `live`; the first of several
  struct Holder {
    ValueId value;
    int64_t bytes = 0;
  };
  std::vector<Holder> holders;  ///< of the peak; most bytes first, ties in program order
  int32_t unknown = 0;          ///< values whose size is not known; counted as nothing
};
MemoryProfile ProfileMemory(const Graph& graph);

/// The value that owns the storage of `value`: itself, unless it is a view, an element of a tuple
/// or the result of an operator that writes in place.
ValueId StorageOf(const Graph& graph, ValueId value);

}  // namespace strata
