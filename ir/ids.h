#pragma once
#include <cstdint>

#include "base/id.h"

namespace strata {

using NodeId = Id<struct NodeTag>;    ///< a node of one Graph
using ValueId = Id<struct ValueTag>;  ///< a result of a node of one Graph
using GraphId = Id<struct GraphTag>;  ///< a graph of one Module
using StrId = Id<struct StrTag>;      ///< an interned string of one Module
using TypeId = Id<struct TypeTag>;    ///< an interned Type of one Module
using DimId = Id<struct DimTag>;      ///< a hash-consed integer expression of one Module
using LocId = Id<struct LocTag>;      ///< an interned source location of one Module

/// Identity of a node across snapshots, passes and files. Handed out by a Module from a counter
/// that the trace persists; never reused; kept by moves and edits, not by clones.
enum class StableId : uint64_t { kNone = 0 };

}  // namespace strata
