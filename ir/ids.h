#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace strata {

/// A dense index into one store. Meaningless outside that store: never persisted, never compared
/// with one of another graph.
template <class Tag>
struct Id {
  static constexpr int32_t kNone = -1;
  int32_t index = kNone;

  constexpr bool valid() const { return index != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

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

template <class Tag>
struct std::hash<strata::Id<Tag>> {
  size_t operator()(strata::Id<Tag> id) const noexcept {
    return static_cast<size_t>(static_cast<uint32_t>(id.index)) * 0x9E3779B97F4A7C15ull;
  }
};
