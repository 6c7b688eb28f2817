#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// A graph of a history, loaded.
struct LoadedGraph {
  std::shared_ptr<const Module> module;
  GraphId id;

  const Graph& graph() const { return module->graph(id); }
};

/// A graph at one snapshot of a run.
struct HistorySnapshot {
  int32_t graph = 0;  ///< index into History::graphs
  std::string ref;    ///< the REF that loads it
  /// Equal for graphs that are equal, names included and StableIds not, in any history.
  std::string content;
};

/// What happened to one graph: it appeared, a pass ran on it, or it changed between passes.
struct HistoryStep {
  int32_t graph = 0;    ///< index into History::graphs
  int32_t before = -1;  ///< index into History::snapshots; -1: the graph appears
  int32_t after = 0;    ///< the same as `before` when nothing changed
  /// The pass; "" and -1 for other steps.
  std::string pass, options;
  int32_t pass_index = -1;
  bool failed = false;
  int64_t id = 0;   ///< of the pass record, for `provenance`
  std::string ref;  ///< of the pass, or of the snapshot after
};

/// The log record of a graph. Only graphs of one compilation are related (see FindDescents).
struct GraphRecord {
  std::string compilation;  ///< "0/0", "1/2_1"; "": outside of compilations
  std::string name;         ///< of the record that the graph came with
  /// The pass whose result the graph came as, without the graph before it: what PyTorch logs of a
  /// compilation that it takes from a cache. "": none.
  std::string ends_pass = {};
};

/// A text of generated code that a compilation left beside its graphs. See diff/code/code_diff.h.
struct GeneratedCode {
  std::string compilation;  ///< "0/0"; "": outside of compilations
  std::string name;         ///< "inductor_output_code", "inductor_output_code_backward"
  std::string content;      ///< equal for equal texts, in any history
  std::string aot_id = {};  ///< of its graph, as the text says: see GraphsByAotId; "": it does not
};
struct CodeText;

/// What a run did to its graphs, in order of time: a run of a trace, a log of one rank, or a single
/// graph. Graphs are loaded on demand.
struct History {
  std::string ref;  ///< the REF of the run: "run.strata#run=2"
  int32_t rank = 0;
  int32_t num_ranks = 1;  ///< from `rank` on, all with these graphs
  /// Nodes keep their StableIds from snapshot to snapshot of a graph.
  bool stable_ids = false;
  std::vector<std::string> graphs;
  std::vector<GraphRecord> records;  ///< by graph, of logs; else empty
  /// Its graphs are those that were asked for with TORCH_LOGS, not all that there were.
  bool is_excerpt = false;
  /// Compilations whose graphs or code came from a compiler cache: their passes did not run.
  std::set<std::string> cached;
  std::vector<HistorySnapshot> snapshots;
  std::vector<HistoryStep> steps;
  std::vector<GeneratedCode> code;  ///< of logs, in their order

  /// Loads a text of `code`.
  std::function<Result<CodeText>(int32_t code)> load_code;
  /// Loads a snapshot.
  std::function<Result<LoadedGraph>(int32_t snapshot)> load;
  /// Provenance records of a step's pass; empty if the pass recorded none.
  std::function<Result<std::vector<Provenance>>(const HistoryStep& step)> provenance;

  bool HasRank(int64_t one) const { return rank <= one && one < rank + num_ranks; }
  const std::string& GraphOf(const HistoryStep& step) const {
    return graphs[static_cast<size_t>(step.graph)];
  }
  const HistorySnapshot& snapshot(int32_t index) const {
    return snapshots[static_cast<size_t>(index)];
  }
};

/// The pass that a step ends, also where the graph before it stayed in a cache; "": none.
std::string_view PassOf(const History& history, const HistoryStep& step);

/// Whether two snapshots hold the same graph, including StableIds if the history has them.
bool SameGraph(const History& history, int32_t a, int32_t b);

/// For messages: `pass 4 'dce'`, or `graph 'step'` for a step without a pass.
std::string DescribeStep(const History& history, const HistoryStep& step);

/// Names under which the graphs of two runs correspond, by graph. They are the graphs' own, but a
/// graph that came from a cache, or into an excerpt, as the result of a pass has the name of the
/// graph on which the other run ran this pass, and one of a debug folder the name of the other
/// run's graph with its id (see GraphsByAotId). If both histories have one graph, both have its
/// name in `a`.
struct GraphNames {
  std::vector<std::string> a, b;
};
GraphNames MatchGraphNames(const History& a, const History& b);

/// Whether `other` may lack this step of `history` although it did the same: a cache had the
/// result, `other` is an excerpt, or one of both is a debug folder, and the step another one than
/// the pass post_grad_graph, whose result alone both hold (see IsOfDebugFolder).
bool MayLack(const History& other, const History& history, const HistoryStep& step);

/// What `history` did and `other` took from a cache, in order: `pass 1 'joint_graph'`,
/// `graph 'joint_graph'`.
std::vector<std::string> TakenFromCache(const History& history, const History& other);

/// Corresponding steps of two runs: the same pass on the same graph, or the first step of a graph,
/// in the order of both runs. A step without a counterpart has -1 on the other side. Graphs
/// correspond as MatchGraphNames says.
struct StepPair {
  int32_t a = -1, b = -1;
};
std::vector<StepPair> AlignSteps(const History& a, const History& b);

}  // namespace strata
