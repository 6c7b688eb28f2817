#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "prove/evaluator.h"

namespace strata::prove {

/// Evaluates the graph that all ranks of a mesh run, node by node on all ranks: collectives read
/// the operands of the ranks of their group, which is named as axes of the mesh.
/// The result of a launch is undefined until a wait, and after it where what was sent was
/// overwritten before.
class RankEvaluator {
 public:
  /// Called after each node with its results on each rank; may overwrite their elements.
  using Observer = std::function<void(NodeId node, std::span<Values> results)>;

  /// REQUIRES: graph and mesh outlive this.
  RankEvaluator(const Graph& graph, const Mesh& mesh, uint64_t seed);

  /// Runs the graph: inputs and outputs of each rank. Errors: those of Evaluator, a collective that
  /// is not known or that names a group which the mesh does not have.
  Result<std::vector<std::vector<Value>>> Run(std::span<const std::vector<Value>> inputs,
                                              const Observer& observe = {});

  std::set<std::string> opaque() const;
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
  /// The launch that `node` waits for; null: it waits for no launch.
  const Launched* LaunchedBefore(NodeId node) const;
  /// Frees what was sent, if nothing else waits for it.
  void ForgetLaunchBefore(NodeId node);
  Launched LaunchedWith(NodeId node, const std::vector<Values>& results) const;
  Result<std::vector<Values>> Evaluate(NodeId node);

  const Graph& graph_;
  const Mesh& mesh_;
  std::vector<Evaluator> ranks_;
  NodeId failed_;
  std::map<int32_t, Launched> launched_;  // by the launch's NodeId
};

/// The part of a whole tensor that a rank holds, with zeros after it where ranks do not divide a
/// dimension. Partial axes hold the whole. REQUIRES: no parts of blocks, no rows by token or
/// expert.
Tensor LocalPart(const Tensor& whole, std::span<const Placement> placements, const Mesh& mesh,
                 int64_t rank);

}  // namespace strata::prove
