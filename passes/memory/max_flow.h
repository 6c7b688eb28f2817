#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace strata {

/// A network of vertices and directed edges with capacities. Finds a minimum cut by Dinic's
/// algorithm: O(V²·E), near linear on the layered networks of graphs.
class FlowNetwork {
 public:
  /// A capacity that no cut crosses, if it can be avoided. Sums of others must stay below it.
  static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

  explicit FlowNetwork(int32_t num_vertices) : edges_of_(static_cast<size_t>(num_vertices)) {}

  /// REQUIRES: 0 <= capacity <= kInfinite.
  void AddEdge(int32_t from, int32_t to, int64_t capacity);

  /// The maximum flow, which is the capacity of a minimum cut; kInfinite or more: every cut crosses
  /// an infinite edge. Call once.
  int64_t Run(int32_t source, int32_t sink);
  /// After `Run`, by vertex: whether it is on the source's side of the minimum cut that is nearest
  /// to the source.
  const std::vector<bool>& source_side() const { return source_side_; }

 private:
  struct Edge {
    int32_t to = 0;
    int64_t left = 0;  ///< capacity that no flow uses; edge 2i+1 is the reverse of edge 2i
  };

  bool FindLevels(int32_t source, int32_t sink);
  int64_t Augment(int32_t source, int32_t sink);

  std::vector<Edge> edges_;
  std::vector<std::vector<int32_t>> edges_of_;
  std::vector<int32_t> level_;
  std::vector<size_t> next_;  // by vertex: the edge to try next
  std::vector<bool> source_side_;
};

}  // namespace strata
