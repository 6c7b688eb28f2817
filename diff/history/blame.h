#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diff/history/history.h"
#include "diff/history/lineage.h"
#include "ir/result.h"

namespace strata {

/// Something that happened to a node.
struct BlameEvent {
  int32_t pass_index = -1;  ///< -1: no pass; the graph came, or changed between passes
  std::string pass;
  /// `given`, `born: copy of mm`, `moved, args[1]: 2 → 3`, `deleted: replaced by addmm`, …
  std::string what;
  std::string node;               ///< its name after the event; of a deletion before it
  std::vector<std::string> from;  ///< born: the nodes it was made from, before the pass
  std::vector<std::string> to;    ///< deleted: the nodes that stand for it, after the pass
  std::vector<FieldDiff> fields;  ///< what differs
  std::string ref;                ///< of the pass or of the graph
};

/// The life of a node over the passes of its graph.
struct Blame {
  std::string node;  ///< as it was asked for
  std::string graph;
  std::string ref;  ///< the moment at which it was asked for
  /// That the first and the last node of the story are one; 1 inside our own traces.
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

/// Follows a node through all moments of a graph: backward and forward. Inside our own traces by
/// StableIds and birth certificates, exactly; in imported logs by composed diffs.
class Blamer {
 public:
  /// Compares all moments of `graph`. REQUIRES: `history` outlives this.
  /// Errors: a graph that cannot be loaded.
  static Result<Blamer> Make(const History& history, int32_t graph);

  /// The life of `name`, as it is called at `moment` of the history.
  /// Errors: no such node there.
  Result<Blame> Follow(int32_t moment, std::string_view name) const;
  /// The lives of the nodes it was made from, and of those that stand for it, each with what they
  /// came from and became; nearest first, at most `limit`.
  Result<std::vector<Blame>> Relatives(int32_t moment, std::string_view name, size_t limit) const;

 private:
  Blamer(const History& history, int32_t graph, Lineage lineage)
      : history_(&history), graph_(graph), lineage_(std::move(lineage)) {}

  /// The last time that the graph is at a moment of the history; counts moments of the lineage.
  int32_t LastTimeAt(int32_t moment) const;
  Result<LifeId> Find(int32_t time, std::string_view name) const;
  Result<std::string> NameAt(LifeId life, int32_t time) const;
  Result<Blame> Tell(LifeId life, int32_t time) const;
  const HistoryStep& step(int32_t time) const {
    return history_->steps[static_cast<size_t>(steps_[static_cast<size_t>(time)])];
  }

  const History* history_;
  int32_t graph_;
  Lineage lineage_;
  std::vector<int32_t> steps_;  // by time: index into the history's steps
  /// What speaks against a life, at a moment of the lineage.
  struct Doubt {
    LifeId life;
    int32_t time;
    std::string what;
  };
  std::vector<Doubt> doubts_;
};

}  // namespace strata
