#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  std::string node;               ///< its name after the event; of a deletion before it
  std::vector<std::string> from;  ///< born: the nodes it was made from, before the pass
  std::vector<std::string> to;    ///< deleted: the nodes that stand for it, after the pass
  /// The graph that `from` names nodes of, or that the node was carried over from, when it is
  /// another one.
  std::string from_graph;
  std::vector<FieldDiff> fields;  ///< what differs
  std::string ref;                ///< of the pass or of the graph
};

/// The history of a node over the passes of its graph, of the graphs that it came from, and of
/// those that came from it.
struct Blame {
  std::string node;  ///< as it was asked for
  std::string graph;
  std::string ref;  ///< the snapshot at which it was asked for
  /// That the nodes of the history are one; 1 inside our own traces. With several ends (a node that
  /// is in the forward and in the backward graph) that of the least certain one.
  double confidence = 1;
  std::vector<BlameEvent> events;  ///< in order of time
  /// Where structure speaks against the ids of a trace, or a direct comparison of the first and the
  /// last graph against the way from one to the next.
  struct Doubt {
    int32_t pass_index = -1;  ///< -1: no pass
    std::string what;
  };
  std::vector<Doubt> contradictions = {};
};

/// Follows a node through all snapshots of its graph, and through the graphs that this one came
/// from or that came from it (see FindDescents): backward and forward. Inside our own traces by
/// StableIds and record certificates, exactly; in imported logs by composed diffs.
class Blamer {
 public:
  /// Compares all snapshots of `graph` and of its family. REQUIRES: `history` outlives this.
  /// Errors: a graph that cannot be loaded.
  static Result<Blamer> Make(const History& history, int32_t graph);

  /// Whether a graph is one of the family.
  bool Covers(int32_t graph) const { return StageOf(graph) >= 0; }
  /// The history of `name`, as it is called at `snapshot` of the history.
  /// REQUIRES: the snapshot's graph is of the family. Errors: no such node there.
  Result<Blame> Follow(int32_t snapshot, std::string_view name) const;
  /// The histories of the nodes it was made from, and of those that stand for it, each with what
  /// they came from and became; nearest first, at most `limit`.
  Result<std::vector<Blame>> Relatives(int32_t snapshot, std::string_view name, size_t limit) const;

  /// A node by name at a snapshot.
  using Occurrence = std::pair<int32_t, std::string>;
  /// Those occurrences of whose nodes no other place's history tells, in their order: of a node
  /// that was carried from graph to graph only the first.
  Result<std::vector<Occurrence>> FirstOccurrences(
      const std::vector<Occurrence>& occurrences) const;

 private:
  /// How a node of a graph came over from the graph's parent.
  struct Crossing {
    NodeHistoryId before;  ///< the same node there; none: it is new
    PairStatus status;
    std::vector<FieldDiff> fields;
    double confidence = 1;
    std::vector<NodeHistoryId> relatives;  ///< of a new one: of the parent
    std::optional<RelationKind> relation;
  };
  /// What speaks against a history, at a snapshot of the lineage.
  struct Doubt {
    NodeHistoryId history;
    int32_t time;
    std::string what;
  };
  /// The histories of one graph.
  struct Stage {
    Stage(int32_t its_graph, Lineage its_lineage)
        : graph(its_graph), lineage(std::move(its_lineage)) {}

    int32_t graph;
    Lineage lineage;
    std::vector<int32_t> steps;  // by snapshot of the lineage: index into the history's steps
    std::vector<Doubt> doubts;
    int32_t parent = -1;              // index into stages_
    int32_t parent_time = -1;         // snapshot of its lineage
    std::vector<Crossing> crossings;  // by entity of the first snapshot
    std::vector<int32_t> children;    // indices into stages_, in order of time
  };
  struct Member {
    int32_t stage = -1;
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

  int32_t StageOf(int32_t graph) const;
  const Stage& stage(int32_t index) const { return stages_[static_cast<size_t>(index)]; }
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
  std::vector<Stage> stages_;
};

}  // namespace strata
