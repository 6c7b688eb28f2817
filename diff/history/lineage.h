#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/id.h"
#include "diff/model/graph_diff.h"
#include "ir/ids.h"
#include "ir/module.h"

namespace strata {

/// A node through all graphs of a Lineage.
using NodeHistoryId = Id<struct NodeHistoryTag>;

/// What happened to a node on the way from one graph to the next.
struct NodeEvent {
  enum class Kind : uint8_t {
    kGiven,    ///< the first graph contains it
    kCreated,  ///< the step created it
    kKept,     ///< the step changed it: `status`, `fields`
    kDeleted,  ///< the step deleted it
  };
  Kind kind = Kind::kGiven;
  int32_t snapshot = 0;  ///< the graph after the event
  PairStatus status;     ///< kKept
  FieldDiffs fields;     ///< kKept
  /// kCreated: the nodes it was made from. kDeleted: the nodes that replace it.
  std::vector<NodeHistoryId> relatives;
  /// The source of `relatives`: a relation of the diff, or a provenance record.
  std::optional<RelationKind> relation;
  std::optional<Origin> origin;
};

/// Follows nodes along a pipeline by composing the diffs of consecutive graphs. Snapshots are
/// numbered from 0; entities are those of the listings of each diff.
///
///     Lineage lineage(graph_0_listing.size());
///     lineage.Add(diff_of_0_and_1);
///     lineage.Add(diff_of_1_and_2);
///     for (const auto& [before, after, confidence] : lineage.Compose(0, 2)) …
///
/// Copies ids and fields out of the diffs, which may be destroyed after `Add`. Memory is linear in
/// nodes times snapshots.
class Lineage {
 public:
  /// REQUIRES: the first graph has `size` printed nodes.
  explicit Lineage(int32_t size);

  /// Appends the next graph. `provenance` gives the exact ancestors of the nodes that a pass
  /// created and takes precedence over relations. REQUIRES: `diff.before` is the last graph.
  void Add(const GraphDiff& diff, std::span<const Provenance> provenance = {});
  /// Appends a graph equal to the last one.
  void AddUnchanged();

  int32_t num_snapshots() const { return static_cast<int32_t>(histories_of_.size()); }

  NodeHistoryId NodeHistoryAt(int32_t snapshot, EntityId entity) const {
    return HistoriesAt(snapshot)[entity];
  }
  /// The node at a snapshot; none: not created yet, or deleted.
  EntityId At(NodeHistoryId history, int32_t snapshot) const;
  /// The first and the last snapshot that contain the node.
  int32_t first(NodeHistoryId history) const { return histories_[history].first; }
  int32_t last(NodeHistoryId history) const { return first(history) + span(history) - 1; }
  /// In order of time; the first is kGiven or kCreated.
  const std::vector<NodeEvent>& events(NodeHistoryId history) const {
    return histories_[history].events;
  }
  /// Probability that the nodes of a history at two snapshots are the same node: the product over
  /// the steps between them. REQUIRES: both snapshots contain the node, and from <= to.
  double Confidence(NodeHistoryId history, int32_t from, int32_t to) const;

  struct Link {
    EntityId before, after;
    double confidence = 1;
  };
  /// The pairs of two snapshots, ordered by `before`.
  std::vector<Link> Compose(int32_t from, int32_t to) const;
  /// Nodes created after `from` and deleted before `to`. A diff of both ends cannot show them.
  std::vector<NodeHistoryId> Transients(int32_t from, int32_t to) const;

  /// A node for which the composed diffs and a direct diff disagree.
  struct Contradiction {
    EntityId before;
    EntityId composed, direct;  ///< none: deleted
  };
  /// REQUIRES: `direct` compares the graphs of these snapshots.
  std::vector<Contradiction> Contradictions(const GraphDiff& direct, int32_t from,
                                            int32_t to) const;

 private:
  struct NodeHistory {
    int32_t first = 0;
    std::vector<EntityId> entities;  // by snapshot, from `first`
    std::vector<NodeEvent> events;
    std::vector<std::pair<int32_t, double>> doubts;  // (snapshot, confidence) of unsure steps
  };
  class Relatives;
  const IdVector<EntityId, NodeHistoryId>& HistoriesAt(int32_t snapshot) const {
    return histories_of_[static_cast<size_t>(snapshot)];
  }
  int32_t span(NodeHistoryId history) const {
    return static_cast<int32_t>(histories_[history].entities.size());
  }
  NodeEvent& AddEvent(NodeHistoryId history, NodeEvent::Kind kind);

  std::vector<IdVector<EntityId, NodeHistoryId>> histories_of_;  // by snapshot
  IdVector<NodeHistoryId, NodeHistory> histories_;
};

}  // namespace strata
