#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// The annotation of a node for a regional compiler, as torchtitan's passes write it.
inline constexpr std::string_view kCompileAttribute = "custom.compile_with_inductor";
/// Nodes with different names are of different regions.
inline constexpr std::string_view kRegionAttribute = "custom.inductor_region";

/// Annotated nodes of a graph, partitioned: members of a region are connected, of one phase and one
/// region name, and no path leaves the region and comes back. So each region can be one node.
///
/// Regions grow in program order: a node joins the regions of what it reads, the latest first.
/// Nodes with effects, collectives, and those that touch memory which the graph writes are never
/// members, and keep their order. Cost: per node the part of the graph between it and the region.
class RegionGraph {
 public:
  explicit RegionGraph(const Graph& graph);

  /// Members in program order, regions by their first member.
  const std::vector<std::vector<NodeId>>& regions() const { return regions_; }
  /// -1: none.
  int32_t region_of(NodeId node) const { return region_of_[node]; }

  /// A node, or a region.
  struct Unit {
    NodeId node;
    int32_t region = -1;
  };
  /// Program order, but for what must wait for a region. Each region is one unit.
  std::vector<Unit> Schedule() const;

 private:
  void FindMembers();
  bool MayBeMember(NodeId node) const;
  bool AreCompatible(NodeId a, NodeId b) const;
  void Grow();
  bool HasCycle(const std::vector<NodeId>& members) const;
  void Number();
  template <class Fn>
  void ForEachSuccessor(NodeId node, Fn&& fn) const;

  const Graph& graph_;
  IdVector<NodeId, int32_t> position_;
  IdVector<NodeId, NodeId> next_ordered_;  // what must come after it, beside its readers
  IdVector<NodeId, bool> is_ordered_, can_join_;
  IdVector<NodeId, int32_t> region_of_;
  std::vector<std::vector<NodeId>> regions_;
};

}  // namespace strata
