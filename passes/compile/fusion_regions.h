#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/symbol_sizes.h"

namespace strata {

/// Which nodes of a graph become one kernel each.
struct FusionOptions {
  bool exact = true;      ///< only formulas bitwise equal to ATen
  int64_t min_nodes = 2;  ///< smaller regions stay as they are
  int64_t max_arguments = 32;
};

/// Grows regions over a graph in program order: an operator joins the regions that make its
/// operands, where all of them together are one kernel and no value leaves the region and comes
/// back.
///
/// Chunks of a module run in an order in which exchanges of tokens overlap with work. That order
/// stays: a region in a chunk has nodes of that chunk only, and no other node that reads a member
/// stands before the last one.
///
/// Views between members are looked through: they stay in the graph for other readers. In-place
/// operators count as their result, if no node reads the changed memory under an older name.
/// Cost is linear in nodes, times the neighbourhood that the search for cycles visits (bounded).
class FusionRegions {
 public:
  FusionRegions(const Graph& graph, const FusionOptions& options);

  /// Members in program order, regions by their first member.
  const std::vector<std::vector<NodeId>>& regions() const { return regions_; }
  /// Takes back a region: its members are nodes like others. Numbers of regions stay.
  void Dissolve(int32_t region);
  /// Region of a node; -1: none.
  int32_t region_of(NodeId node) const { return region_of_[node]; }
  /// The member of `region` whose elements `value` is, over views; none when it comes from outside.
  std::optional<NodeId> MemberBehind(ValueId value, int32_t region) const;
  /// Nodes that must come before `node` for what they do to memory, beside its operands.
  const std::vector<NodeId>& before(NodeId node) const { return before_[node]; }
  /// The placeholder that an in-place member writes; none for memory that only the program knows.
  std::optional<ValueId> WrittenInput(NodeId node) const;

 private:
  /// A number at each of the sizes that open ones are tried at (SampleSizes).
  using Counts = std::vector<int64_t>;

  /// A set of nodes that may become a region.
  struct Group {
    std::vector<NodeId> members;  // in program order
    Counts elements;              // of the largest value
    Counts columns;               // empty: all values have as many elements
    Phase phase = Phase::kUnknown;
    int32_t chunk = 0;
    bool writes_input = false;
    bool is_rowlike = false;  // its values may be one per row: last dimension 1
  };

  void OrderMemory();
  void FindChunks();
  bool MayFuseInPlace(NodeId node) const;
  Group Single(NodeId node) const;
  std::optional<Group> Union(const Group& a, const Group& b) const;
  bool HasCycle(const Group& group) const;
  bool DelaysReader(const Group& group) const;
  size_t CountArguments(const Group& group) const;
  void Grow();
  void Sink();
  void Keep();
  std::vector<NodeId> ReadersOf(NodeId node) const;
  /// Empty when they are not known before a run.
  Counts Elements(ValueId value) const;
  /// a / b; empty unless that is an integer.
  static Counts Quotient(const Counts& a, const Counts& b);

  const Graph& graph_;
  FusionOptions options_;
  std::vector<SymbolSizes> samples_;
  IdVector<NodeId, int32_t> position_;
  IdVector<NodeId, std::vector<NodeId>> before_, after_;
  IdVector<NodeId, int32_t> chunk_;  // 0: of no chunk
  IdVector<NodeId, bool> can_fuse_;  // pointwise or reduction
  IdVector<NodeId, bool> is_reshape_;
  std::vector<Group> groups_;
  IdVector<NodeId, int32_t> region_of_;  // index in groups_, later in regions_
  std::vector<std::vector<NodeId>> regions_;
};

}  // namespace strata
