#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/expert/execution_order.h"

namespace strata {

/// The bodies of the chunks of one module in one direction.
struct ChunkBodies {
  StrId root;
  bool is_backward = false;
  std::vector<std::vector<NodeId>> chunks;  ///< nodes by chunk, in program order
};

/// In order of their first nodes. `pattern` selects modules as `ep-chunk` does.
/// Errors: a node that says it is of a body, but not of which chunk or region.
Result<std::vector<ChunkBodies>> CollectChunkBodies(const Graph& graph, std::string_view pattern);

/// A region with what its nodes need of each other. Nodes are numbered from 0 in program order.
class OverlapRegion {
 public:
  /// Errors: a chunk is missing; token exchanges that do not agree (docs/expert.md lists them).
  /// None: no chunk exchanges tokens.
  static Result<std::optional<OverlapRegion>> Make(const Graph& graph, const ExecutionOrder& order,
                                                   const ChunkBodies& bodies);

  const ChunkBodies& bodies() const { return *bodies_; }
  size_t size() const { return nodes_.size(); }
  NodeId node(size_t i) const { return nodes_[i]; }
  size_t chunk(size_t i) const { return chunk_[i]; }
  /// Nodes of the region, of any chunk, that must run before: directly, or with nodes in between
  /// that are of no region.
  const std::vector<size_t>& Before(size_t i) const { return before_[i]; }
  bool is_communication(size_t i) const { return is_communication_[i]; }
  bool is_count_sync(size_t i) const { return is_count_sync_[i]; }
  /// Launches of token exchanges of a chunk, in program order; of all chunks equally many.
  const std::vector<size_t>& Markers(size_t chunk) const { return markers_[chunk]; }
  bool is_marker(size_t i) const { return is_marker_[i]; }
  /// The completion of each marker of each chunk, with its label.
  struct Wait {
    NodeId node;
    std::string label;
  };
  const std::vector<Wait>& waits() const { return waits_; }
  /// In which order chunks take their turns: the last one first in backward.
  std::vector<size_t> ChunkOrder() const;
  std::string Where(const Graph& graph) const;

 private:
  explicit OverlapRegion(const ChunkBodies& bodies) : bodies_(&bodies) {}
  void AddNodes(const Graph& graph, const ExecutionOrder& order);
  void FindBefore(const Graph& graph, const ExecutionOrder& order);
  void FindMarkers(const Graph& graph);
  Status CheckWaits(const Graph& graph, const ExecutionOrder& order);
  Status CheckLabels(const Graph& graph) const;

  const ChunkBodies* bodies_;
  std::vector<NodeId> nodes_;
  std::vector<size_t> chunk_;
  std::vector<std::vector<size_t>> before_, markers_;
  std::vector<bool> is_communication_, is_count_sync_, is_marker_;
  std::vector<Wait> waits_;
};

}  // namespace strata
