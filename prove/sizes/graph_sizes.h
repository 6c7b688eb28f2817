#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "ir/graph.h"
#include "prove/sizes/mesh_sizes.h"
#include "prove/sizes/size_constraints.h"

namespace strata::prove {

/// The sizes of a graph: of the dimensions of its values, and of arguments that are sizes.
class GraphSizes {
 public:
  /// Errors: symbolic sizes with hints. REQUIRES: the graph outlives this.
  static Result<GraphSizes> Of(Graph& graph, SizeConstraints& constraints);

  Graph& graph() const { return *graph_; }
  /// One per dimension; a data-dependent one is unknown.
  const std::vector<SizeId>& of(ValueId value) const { return values_[value]; }
  /// By slot (see Use).
  const std::map<uint32_t, SizeId>& arguments() const { return arguments_; }
  /// The size of a literal in the arguments; made if there is none. A negative literal is minus a
  /// size, which `number` is.
  SizeId Argument(uint32_t slot, int64_t number, SizeConstraints& constraints);
  /// By slot: numbers of arithmetic that are known to be a size, as the bound of an index is.
  const std::map<uint32_t, SizeId>& bounds() const { return bounds_; }
  void SetBound(uint32_t slot, SizeId size) { bounds_.emplace(slot, size); }
  /// Whether the other graph has the same number in the same place.
  bool IsShared(uint32_t slot) const { return shared_.contains(slot); }
  void SetShared(uint32_t slot) { shared_.insert(slot); }
  /// Literals that count the ranks, or parts, that a list has an element for: of the elements that
  /// stay they are right.
  bool IsPosition(uint32_t slot) const { return positions_.contains(slot); }
  void SetPosition(uint32_t slot) { positions_.insert(slot); }
  /// Nodes with as many results, or elements of lists, as a size says: pieces for ranks.
  const std::map<NodeId, SizeId>& counts() const { return counts_; }
  void SetCount(NodeId node, SizeId count) { counts_[node] = count; }

 private:
  explicit GraphSizes(Graph& graph) : graph_(&graph) {}

  Graph* graph_;
  IdVector<ValueId, std::vector<SizeId>> values_;
  std::map<uint32_t, SizeId> arguments_, bounds_;
  std::set<uint32_t> shared_, positions_;  // slots
  std::map<NodeId, SizeId> counts_;
};

/// Adds how the sizes of each call depend on each other: by the operator's sharding rule where it
/// has one. What no rule says follows from the numbers: sizes of one call that are the same number
/// are one. Errors: a group that the mesh does not have.
Status AddCalls(GraphSizes& sizes, MeshSizes& mesh, SizeConstraints& constraints);

/// Adds that values and arguments which two graphs of a program have in common have the same sizes,
/// or, where `before` is placed and `after` lowered, parts of them. Nodes are paired by StableId;
/// without `stable_ids` inputs and outputs by position.
void AddPairs(GraphSizes& before, GraphSizes& after, bool stable_ids, const MeshSizes& mesh,
              SizeConstraints& constraints);

}  // namespace strata::prove
