#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "diff/history/history.h"
#include "diff/history/lineage.h"

namespace strata {

/// Something that happened to a node.
struct BlameEvent {
  int32_t pass_index = -1;  ///< -1: no pass; the graph came, or changed between passes
  std::string pass;
  std::string graph;
  /// `given`, `carried over`, `born: copy of mm`, `moved, changed args[1]: 2 → 3`,
  /// `deleted: replaced by addmm`, …
  std::string what;
  std::string node;               ///< its name after the event; for a deletion, before it
  std::vector<std::string> from;  ///< created: the nodes it was made from, before the pass
  std::vector<std::string> to;    ///< deleted: the nodes that replace it, after the pass
  /// The graph of the nodes in `from`, or the graph that the node was carried over from; "":
  /// `graph`.
  std::string from_graph;
  FieldDiffs fields;  ///< what differs
  std::string ref;    ///< of the pass or of the graph
};

/// The history of a node over the passes of its graph, of the graphs that it came from, and of
/// those that came from it.
struct Blame {
  std::string node;  ///< the requested name
  std::string graph;
  std::string ref;  ///< the requested snapshot
  /// `model.py:12 in forward: y = self.wq(x)`; "": the snapshot does not say.
  std::string source = {};
  /// Probability that all nodes of the history are the same node; 1 in traces with stable ids. With
  /// several ends (a node in the forward and in the backward graph), the lowest of them.
  double confidence = 1;
  std::vector<BlameEvent> events;  ///< in order of time
  /// Where structure contradicts the ids of a trace, or a direct diff of the first and the last
  /// graph contradicts the composed diffs.
  struct Doubt {
    int32_t pass_index = -1;  ///< -1: no pass
    std::string what;
  };
  std::vector<Doubt> contradictions = {};
};

/// Follows a node backward and forward through all snapshots of its graph and of the related graphs
/// (see FindDescents). Exact in traces with StableIds and provenance records; in imported logs by
/// composed diffs.
class Blamer {
 public:
  /// Diffs all snapshots of `graph` and of its related graphs. REQUIRES: `history` outlives this.
  /// Errors: a graph that cannot be loaded.
  static Result<Blamer> Make(const History& history, int32_t graph);

  /// Whether the graph is one of the related graphs.
  bool Covers(int32_t graph) const { return StageOf(graph).valid(); }
  /// The history of the node named `name` at `snapshot`. REQUIRES: Covers(the snapshot's graph).
  /// Errors: the snapshot has no such node.
  Result<Blame> Follow(int32_t snapshot, std::string_view name) const;
  /// The histories of the nodes it was made from, and of those that stand for it, each with what
  /// they came from and became; nearest first, at most `limit`.
  Result<std::vector<Blame>> Relatives(int32_t snapshot, std::string_view name, size_t limit) const;

  /// A snapshot, and the name of a node there.
  using Occurrence = std::pair<int32_t, std::string>;
  /// The occurrences without those that the history of another one contains, in order: of a node
  /// that was carried from graph to graph, only the first.
  Result<std::vector<Occurrence>> FirstOccurrences(
      const std::vector<Occurrence>& occurrences) const;

 private:
  struct Stage;
  using StageId = Id<struct StageTag>;
  /// How a node of a graph relates to the graph's parent.
  struct Crossing {
    NodeHistoryId before;  ///< the same node in the parent; none: it is new
    PairStatus status;
    FieldDiffs fields;
    double confidence = 1;
    std::vector<NodeHistoryId> relatives;  ///< of a new one: of the parent
    std::optional<RelationKind> relation;
  };
  /// A contradiction in a history, at a snapshot of the lineage.
  struct Doubt {
    NodeHistoryId history;
    int32_t time;
    std::string what;
  };
  /// The histories of the nodes of one graph.
  struct Stage {
    Stage(int32_t its_graph, Lineage its_lineage)
        : graph(its_graph), lineage(std::move(its_lineage)) {}

    int32_t graph;
    Lineage lineage;
    std::vector<int32_t> steps;  // by snapshot of the lineage: index into the history's steps
    std::vector<Doubt> doubts;
    StageId parent;
    int32_t parent_time = -1;                // snapshot of its lineage
    IdVector<EntityId, Crossing> crossings;  // of the first snapshot
    std::vector<StageId> children;           // in order of time
  };
  struct Member {
    StageId stage;
    NodeHistoryId history;
    friend auto operator<=>(const Member&, const Member&) = default;
  };
  struct Found {
    Member member;
    int32_t time = 0;  ///< snapshot of the lineage
  };
  class NodeHistory;

  explicit Blamer(const History& history) : history_(&history) {}
  static Result<Stage> MakeStage(const History& history, int32_t graph);
  Status Cross(Stage& stage) const;

  /// None: the graph is not related.
  StageId StageOf(int32_t graph) const;
  const Stage& stage(StageId id) const { return stages_[id]; }
  const HistoryStep& step(const Stage& stage, int32_t time) const {
    return history_->steps[static_cast<size_t>(stage.steps[static_cast<size_t>(time)])];
  }
  Result<LoadedGraph> Load(const Stage& stage, int32_t time) const {
    return history_->load(step(stage, time).after);
  }
  const std::string& GraphName(const Stage& stage) const {
    return history_->graphs[static_cast<size_t>(stage.graph)];
  }
  /// The last time that the graph is at a snapshot of the history.
  int32_t LastTimeAt(const Stage& stage, int32_t snapshot) const;
  Result<Found> Find(int32_t snapshot, std::string_view name) const;
  Result<std::string> NameAt(Member member, int32_t time) const;

  const History* history_;
  IdVector<StageId, Stage> stages_;
};

}  // namespace strata
