#pragma once
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/core/collectives.h"
#include "passes/placement/costs/topology.h"
#include "passes/simulate/collective_table.h"
#include "passes/simulate/expected_sizes.h"

namespace strata {

/// What nodes of the graph of one rank cost on a topology, in µs.
///
/// Computation is a roofline: the time for its operands and results in memory, that for its
/// products, or that for functions of elements, at least that of a kernel. Views, waits and
/// literals are free. Collectives cost what
/// passes/placement/costs/collective_cost.h says of their group on the mesh. Data-dependent sizes
/// count as ExpectedSizes says. Functions take the graph that the costs were made for.
class NodeCost {
 public:
  /// The mesh is that of the graph (`kMeshAttribute`); without one, the ranks of a group, as its
  /// collectives state them, are on one node as far as they fit.
  /// Errors: a mesh that cannot be read, or that fills nodes unevenly.
  static Result<NodeCost> Make(Topology topology, const Graph& graph);
  /// The same for a graph that states no mesh; axes have the names of its groups.
  static NodeCost OnMesh(Topology topology, const Graph& graph, Mesh mesh) {
    return NodeCost(std::move(topology), std::move(mesh), graph);
  }

  const Topology& topology() const { return topology_; }
  const Mesh& mesh() const { return mesh_; }

  /// 0 for what is not computed.
  double ComputeUs(const Graph& graph, NodeId node) const;
  const ExpectedSizes& expected() const { return expected_; }
  /// REQUIRES: a launch. Errors: a group that the mesh does not have, or that fills nodes unevenly.
  Result<double> CollectiveUs(const Graph& graph, NodeId launch) const;
  /// Whether the ranks of its group are on one node. REQUIRES and errors as for CollectiveUs.
  Result<bool> IsInsideNodes(const Graph& graph, NodeId launch) const;

  /// From now on collectives of the table take its times.
  void UseTable(CollectiveTable table) { table_ = std::move(table); }
  /// From now on only collectives of this kind take time: what those alone cost.
  void CountOnly(CollectiveKind kind) { only_ = kind; }
  /// From now on computation takes what was measured, 0 for nodes without a measurement.
  void UseMeasured(std::map<NodeId, double> us) { measured_us_ = std::move(us); }

 private:
  /// On a core of its own.
  double KernelUs(const Graph& graph, NodeId node) const;
  /// Of the functions that it computes of elements.
  double FunctionsUs(const Graph& graph, NodeId node) const;
  NodeCost(Topology topology, Mesh mesh, const Graph& graph)
      : topology_(std::move(topology)), mesh_(std::move(mesh)), expected_(graph) {}
  /// None: the table does not have it.
  std::optional<double> TableUs(const Graph& graph, NodeId launch) const;
  Result<AxisTopology> TopologyOf(const Graph& graph, NodeId launch) const;

  Topology topology_;
  Mesh mesh_;
  ExpectedSizes expected_;
  std::optional<CollectiveTable> table_;
  std::optional<CollectiveKind> only_;
  std::optional<std::map<NodeId, double>> measured_us_;
};

}  // namespace strata
