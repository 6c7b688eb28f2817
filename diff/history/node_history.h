#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diff/history/blame.h"

namespace strata {

/// Collects the events of one node: in its graph, and in the related graphs before and after it.
class Blamer::NodeHistory {
 public:
  explicit NodeHistory(const Blamer& blamer) : blamer_(blamer) {}

  /// `time`: the snapshot of the requested name. REQUIRES: not called before.
  Status Build(Member member, int32_t time);

  Blame& blame() { return blame_; }
  /// The node in each graph.
  const std::vector<Member>& members() const { return members_; }
  /// Ancestors of the members, and nodes that replace them.
  const std::vector<Member>& relatives() const { return relatives_; }

 private:
  const Stage& stage(StageId id) const { return blamer_.stage(id); }
  /// How a member relates to the graph's parent; null if it was created later, or without a parent.
  const Crossing* CrossingOf(Member member) const;

  /// Adds the events in its own graph, up to a snapshot.
  Status AddNodeEvents(Member member, int32_t until);
  Status AddNodeEvent(Member member, const NodeEvent& event);
  /// Adds what a node without ancestors reads, and what reads it.
  Status AddSurroundings(StageId its_stage, int32_t time, BlameEvent& event) const;
  Status AddCrossing(Member member, const Crossing& crossing);
  /// Adds the events in the children of its graph. Returns the lowest confidence among them.
  Result<double> AddChildren(Member member);
  /// Adds the nodes of a child that replace or copy a node of its parent. Returns false if there
  /// are none.
  Result<bool> AddSuccessors(Member member, StageId child);
  void AddDoubts(Member member);

  /// Adds an event at a snapshot of a stage's graph.
  BlameEvent& Add(StageId its_stage, int32_t time);
  /// The names at `time`; adds the nodes to `relatives_`.
  Result<std::vector<std::string>> NamesOf(StageId its_stage,
                                           const std::vector<NodeHistoryId>& histories,
                                           int32_t time);

  const Blamer& blamer_;
  Blame blame_;
  std::vector<std::pair<int32_t, BlameEvent>> events_;  // with the index of the history's step
  std::vector<Member> members_, relatives_;
};

}  // namespace strata
