#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/shared_calls.h"

namespace strata::prove {

/// The ranks of the group that a collective of `rank` names, in the order of the group.
using GroupLookup =
    std::function<Result<std::vector<int64_t>>(std::string_view group, int64_t rank)>;

/// Groups that are named as axes of a mesh. REQUIRES: the mesh outlives this.
GroupLookup GroupsOf(const Mesh& mesh);

/// Evaluates the graph that each rank runs, node by node on all ranks: collectives read the
/// operands of the ranks of their group. The result of a launch is undefined until a wait, and
/// after it where what was sent was overwritten before. Ranks on which a call reads the same memory
/// have the same results, in one memory if nothing writes to it (prove/evaluation/shared_calls.h).
class RankEvaluator {
 public:
  /// Called after each node with its results on each rank; may overwrite their elements, in a copy
  /// where nothing else writes to them: ranks, and other values, may share their memory.
  using Observer = std::function<void(NodeId node, std::span<Values> results)>;

  /// All ranks run one graph. `rounds`: as of Evaluator. REQUIRES: graph and mesh outlive this.
  RankEvaluator(const Graph& graph, const Mesh& mesh, uint64_t seed, bool rounds = false);
  /// Each rank runs its own. REQUIRES: they outlive this, and have the same nodes: but for
  /// literals, and which results of a node are read.
  RankEvaluator(std::vector<const Graph*> graphs, GroupLookup groups, uint64_t seed,
                bool rounds = false);

  /// Runs the graph: inputs and outputs of each rank. Errors: those of Evaluator, a collective that
  /// is not known or that names a group which the mesh does not have.
  Result<std::vector<std::vector<Value>>> Run(std::span<const std::vector<Value>> inputs,
                                              const Observer& observe = {});

  /// Ranks draw random numbers from generators that are seeded alike: as Evaluator::SeedGenerator.
  void SeedGenerators();
  std::set<std::string> opaque() const;
  OpaqueCalls opaque_calls() const;
  int64_t evaluations() const;
  /// As of Evaluator, on all ranks.
  int64_t at_bound() const;
  NodeId failed() const { return failed_; }

 private:
  /// What a wait returns, and what was sent, with the version that it had.
  struct Launched {
    std::vector<Values> results;
    std::vector<std::pair<std::shared_ptr<const Storage>, uint64_t>> sent;
  };

  Result<std::vector<Values>> Collective(NodeId node) const;
  Result<Tensor> Exchanged(NodeId node, std::span<const Tensor> operands,
                           std::span<const int64_t> members, int64_t index) const;
  Result<Values> OwnOp(NodeId node, size_t rank) const;
  /// The ranks of the group that a string argument of `node` names, and the place of `rank` in it.
  struct Group {
    std::vector<int64_t> members;
    int64_t index;
  };
  std::string_view ReductionOf(NodeId node, size_t rank) const;
  Result<Group> GroupAt(NodeId node, size_t argument, size_t rank) const;
  /// The launch that `node` waits for; null: it waits for no launch.
  const Launched* LaunchedBefore(NodeId node) const;
  /// Frees what was sent, if nothing else waits for it.
  void ForgetLaunchBefore(NodeId node);
  Launched LaunchedWith(NodeId node, const std::vector<Values>& results) const;
  Result<std::vector<Values>> Evaluate(NodeId node);
  /// One of `evaluated` on which the node computes what it computes on `rank`; none: there is none.
  std::optional<size_t> RankLike(NodeId node, size_t rank, std::span<const size_t> evaluated) const;
  /// What a reader sees before the wait.
  Tensor InFlight(NodeId node, const Tensor& result) const;

  const Graph& graph(size_t rank) const { return *graphs_[rank]; }

  std::vector<const Graph*> graphs_;  // by rank
  const Graph& graph_;                // of the first: the nodes of all
  GroupLookup groups_;
  bool rounds_;
  SharedCalls shared_;
  std::vector<Evaluator> ranks_;
  NodeId failed_;
  std::map<int32_t, Launched> launched_;  // by the launch's NodeId
};

}  // namespace strata::prove
