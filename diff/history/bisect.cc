#include "diff/history/bisect.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "diff/diff.h"
#include "diff/pattern/titles.h"
#include "ir/fingerprint.h"

namespace strata {
namespace {

/// Identities of snapshots, each found once.
class Identities {
 public:
  Identities(const History& history, const BisectOptions& options)
      : history_(history), options_(options) {}

  Result<std::string> Of(int32_t snapshot) {
    const std::string& content = history_.snapshot(snapshot).content;
    if (const auto known = known_.find(content); known != known_.end()) return known->second;
    std::string identity;
    if (options_.identity) {
      STRATA_TRY(identity, options_.identity(history_, snapshot));
    } else {
      STRATA_TRY(const LoadedGraph graph, history_.load(snapshot));
      identity = ToString(FingerprintOf(graph.graph()));
    }
    return known_[content] = std::move(identity);
  }

 private:
  const History& history_;
  const BisectOptions& options_;
  std::map<std::string, std::string> known_;  // by content
};

class Bisector {
 public:
  Bisector(const History& a, const History& b, const BisectOptions& options)
      : a_(a),
        b_(b),
        names_(MatchGraphNames(a, b)),
        options_(options),
        identities_a_(a, options),
        identities_b_(b, options) {}

  Result<std::optional<Divergence>> Run() {
    const std::vector<StepPair> pairs = AlignSteps(a_, b_);
    for (size_t i = 0; i < pairs.size(); ++i)
      STRATA_RETURN_IF_ERROR(Visit(static_cast<int32_t>(i), pairs[i]));
    for (auto& [name, graph] : graphs_)
      STRATA_RETURN_IF_ERROR(Close(name, graph));
    const GraphState* first = nullptr;
    for (const auto& [name, graph] : graphs_) {
      const bool earlier =
          graph.divergence &&
          (first == nullptr || graph.divergence->position < first->divergence->position);
      if (earlier) first = &graph;
    }
    if (first == nullptr) return std::optional<Divergence>();
    Divergence divergence = *first->divergence;
    STRATA_RETURN_IF_ERROR(Describe(divergence));
    return std::optional<Divergence>(std::move(divergence));
  }

 private:
  /// What is known of a graph, as steps are visited.
  struct GraphState {
    int32_t a = -1, b = -1;             // its last snapshots
    std::optional<Divergence> suspect;  // the first change in one run alone since both agreed
    std::optional<Divergence> divergence;
  };

  const std::string& NameOf(const StepPair& pair) const {
    return pair.a >= 0 ? names_.a[static_cast<size_t>(StepA(pair).graph)]
                       : names_.b[static_cast<size_t>(StepB(pair).graph)];
  }
  /// One run alone has this step, and the other may lack it.
  bool IsExplained(const StepPair& pair) const {
    if (pair.b < 0) return MayLack(b_, a_, StepA(pair));
    return pair.a < 0 && MayLack(a_, b_, StepB(pair));
  }
  const HistoryStep& StepA(const StepPair& pair) const {
    return a_.steps[static_cast<size_t>(pair.a)];
  }
  const HistoryStep& StepB(const StepPair& pair) const {
    return b_.steps[static_cast<size_t>(pair.b)];
  }

  Result<bool> Agree(const GraphState& graph) {
    if (graph.a < 0 || graph.b < 0) return graph.a == graph.b;
    if (a_.snapshot(graph.a).content == b_.snapshot(graph.b).content) return true;
    if (options_.agree) return options_.agree(graph.a, graph.b);
    STRATA_TRY(const std::string a, identities_a_.Of(graph.a));
    STRATA_TRY(const std::string b, identities_b_.Of(graph.b));
    if (a == b) return true;
    // Types that only one text states change the identity, and do not count as a difference.
    STRATA_TRY(const LoadedGraph graph_a, a_.load(graph.a));
    STRATA_TRY(const LoadedGraph graph_b, b_.load(graph.b));
    STRATA_TRY(const GraphDiff diff, Diff(graph_a.graph(), graph_b.graph()));
    return diff.Equal();
  }

  Status Visit(int32_t position, const StepPair& pair) {
    if (IsExplained(pair)) return Ok();
    const std::string name = NameOf(pair);
    GraphState& graph = graphs_[name];
    if (graph.divergence) return Ok();
    const GraphState before = graph;
    if (pair.a >= 0) graph.a = StepA(pair).after;
    if (pair.b >= 0) graph.b = StepB(pair).after;
    Divergence here;
    here.position = position;
    here.steps = pair;
    here.graph = name;
    here.snapshot_a = graph.a;
    here.snapshot_b = graph.b;
    if (pair.a >= 0 && pair.b >= 0) {
      STRATA_TRY(const bool agree, Agree(graph));
      if (!agree) graph.divergence = graph.suspect.value_or(here);
      graph.suspect.reset();
    } else if (!graph.suspect && (graph.a != before.a || graph.b != before.b)) {
      graph.suspect = here;
    }
    return Ok();
  }

  /// A change in one run alone, after all that both did.
  Status Close(const std::string&, GraphState& graph) {
    if (graph.divergence || !graph.suspect) return Ok();
    STRATA_TRY(const bool agree, Agree(graph));
    if (!agree) graph.divergence = graph.suspect;
    return Ok();
  }

  Status Describe(Divergence& divergence) const {
    const bool only_a = divergence.steps.b < 0, only_b = divergence.steps.a < 0;
    const HistoryStep& step = only_b ? StepB(divergence.steps) : StepA(divergence.steps);
    if (divergence.snapshot_a < 0 || divergence.snapshot_b < 0) {
      divergence.what = fmt::format("only {} has graph '{}'",
                                    divergence.snapshot_b < 0 ? a_.ref : b_.ref, divergence.graph);
      return Ok();
    }
    STRATA_TRY(const LoadedGraph a, a_.load(divergence.snapshot_a));
    STRATA_TRY(const LoadedGraph b, b_.load(divergence.snapshot_b));
    // Of a pass that one run alone has, what it does, not what the other run lacks.
    STRATA_TRY(GraphDiff diff, only_a ? Diff(b.graph(), a.graph()) : Diff(a.graph(), b.graph()));
    if (options_.ignore) LeaveOutIgnored(diff);
    std::string prefix;
    if (only_a || only_b) {
      prefix = fmt::format("{} runs only in {}: ", DescribeStep(only_a ? a_ : b_, step),
                           only_a ? a_.ref : b_.ref);
    } else if (StepA(divergence.steps).options != StepB(divergence.steps).options) {
      prefix = fmt::format("options '{}' → '{}': ", StepA(divergence.steps).options,
                           StepB(divergence.steps).options);
    }
    divergence.what = prefix + FirstChange(diff, divergence);
    if (only_a) std::swap(divergence.node_a, divergence.node_b);
    return Ok();
  }

  /// Fields to ignore, and what differs in nothing else.
  void LeaveOutIgnored(GraphDiff& diff) const {
    for (Pair& pair : diff.pairs) {
      FieldDiffs kept;
      for (const FieldDiff& field : pair.fields) {
        if (!options_.ignore(diff, pair, field)) kept.Add(field);
      }
      pair.fields = std::move(kept);
      pair.status.changed &= !std::ranges::all_of(pair.fields, &FieldDiff::derived);
      pair.status.derived &= !pair.fields.empty();
    }
    for (Hunk& hunk : diff.hunks) {
      EraseIf(hunk.pairs, [&](PairId pair) {
        return !diff.pairs[pair].status.moved && !diff.pairs[pair].status.changed;
      });
    }
  }

  /// The title of the first hunk; its node goes to `divergence`.
  std::string FirstChange(const GraphDiff& diff, Divergence& divergence) const {
    const Hunk* first = nullptr;
    for (const Hunk& hunk : diff.hunks) {
      if (hunk.pairs.empty() && hunk.inserted.empty() && hunk.deleted.empty()) continue;
      if (first == nullptr) first = &hunk;
      ++divergence.changes;
    }
    if (first == nullptr) return FirstDerived(diff, divergence);
    if (!first->deleted.empty()) divergence.node_a = diff.before.name(first->deleted[0]);
    if (!first->inserted.empty()) divergence.node_b = diff.after.name(first->inserted[0]);
    if (first->deleted.empty() && first->inserted.empty()) {
      const Pair& pair = diff.pairs[first->pairs[0]];
      divergence.node_a = diff.before.name(pair.before);
      divergence.node_b = diff.after.name(pair.after);
    }
    std::string what = Titles(diff).OfHunk(*first);
    if (divergence.changes > 1)
      what += fmt::format(" (and {} more {})", divergence.changes - 1,
                          divergence.changes == 2 ? "change" : "changes");
    return what;
  }

  std::string FirstDerived(const GraphDiff& diff, Divergence& divergence) const {
    for (const Pair& pair : diff.pairs) {
      if (!pair.status.differs()) continue;
      divergence.node_a = diff.before.name(pair.before);
      divergence.node_b = diff.after.name(pair.after);
      return fmt::format("{}: {}", OperatorOf(diff.before, pair.before),
                         Titles::OfPair(pair.status, pair.fields));
    }
    return "the fingerprints differ, no node does";
  }

  const History &a_, &b_;
  const GraphNames names_;
  const BisectOptions& options_;
  Identities identities_a_, identities_b_;
  std::map<std::string, GraphState> graphs_;
};

}  // namespace

Result<std::optional<Divergence>> FindDivergence(const History& a, const History& b,
                                                 const BisectOptions& options) {
  return Bisector(a, b, options).Run();
}

}  // namespace strata
