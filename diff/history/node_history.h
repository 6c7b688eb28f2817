#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diff/history/blame.h"

namespace strata {

/// Puts together what happened to one node: in its graph, in the graphs that this one came from,
/// and in those that came from it.
class Blamer::NodeHistory {
 public:
  explicit NodeHistory(const Blamer& blamer) : blamer_(blamer) {}

  /// `time`: when the node has the name that it was asked for with. To be called once.
  Status Build(Member member, int32_t time);

  Blame& blame() { return blame_; }
  /// The histories that the history is about, one per graph.
  const std::vector<Member>& members() const { return members_; }
  /// Those they were made from, and that stand for them.
  const std::vector<Member>& relatives() const { return relatives_; }

 private:
  const Stage& stage(int32_t index) const { return blamer_.stage(index); }
  /// How a member came to its graph; none when it was not there as it came, or came from nowhere.
  const Crossing* CrossingOf(Member member) const;

  /// What happened to it in its graph, up to a snapshot.
  Status AddNodeEvents(Member member, int32_t until);
  Status AddNodeEvent(Member member, const NodeEvent& event);
  Status AddCrossing(Member member, const Crossing& crossing);
  /// What became of it in the graphs that came from its graph. Returns the confidence of the least
  /// certain way.
  Result<double> AddChildren(Member member);
  /// The nodes of a child that stand for one of its parent, or are copies of it. Returns whether
  /// there are some.
  Result<bool> AddSuccessors(Member member, int32_t child);
  void AddDoubts(Member member);

  /// An event at a snapshot of a stage's graph.
  BlameEvent& Add(int32_t stage, int32_t time);
  /// Their names, at a time of theirs; notes them as relatives.
  Result<std::vector<std::string>> NamesOf(int32_t stage,
                                           const std::vector<NodeHistoryId>& histories,
                                           int32_t time);

  const Blamer& blamer_;
  Blame blame_;
  std::vector<std::pair<int32_t, BlameEvent>> events_;  // with the index of the history's step
  std::vector<Member> members_, relatives_;
};

}  // namespace strata
