#pragma once
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "bench/diff_eval/graphs/layers.h"
#include "bench/diff_eval/mutations/mutations.h"
#include "ir/rewriter.h"

namespace strata::bench {

/// Applies one mutation to many nodes of a graph, each node in one rewrite at most.
class Mutator {
 public:
  Mutator(Module& module, double rate, uint32_t seed, Lineage& lineage)
      : module_(module),
        graph_(module.graph({0})),
        rewriter_(graph_),
        rate_(rate),
        random_(seed),
        lineage_(lineage) {}

  void Run(Mutation mutation);
  /// On one node.
  bool RunOn(Mutation mutation, NodeId node);

  struct Operator {
    std::string_view name;
    bool (Mutator::*on_node)(NodeId) = nullptr;  ///< false: it cannot be
    void (Mutator::*on_graph)() = nullptr;
  };
  static const Operator kOperators[kNumMutations];

 private:
  // Single nodes.
  bool Delete(NodeId id);
  bool Insert(NodeId id);
  bool Attribute(NodeId id);
  bool Target(NodeId id);
  bool Retype(NodeId id);
  bool Rewire(NodeId id);
  bool Swap(NodeId id);
  bool Reorder(NodeId id);
  bool Merge(NodeId id);
  bool DeadCode(NodeId id);
  bool Inputs(NodeId id);
  bool Outputs(NodeId id);
  bool Offload(NodeId id);
  // Operands.
  bool Optional(NodeId id);
  bool SwapEquals(NodeId id);
  // Regions and whole graphs.
  bool Recompute(NodeId id);
  bool Chunk(NodeId id);
  bool Fuse(NodeId id);
  bool Decompose(NodeId id);
  void CastAll();
  void ReplaceAll();
  void Relinearize();
  // Nodes by others.
  bool FuseRegion(NodeId id);
  void ReplaceByFused(const std::vector<NodeId>& nodes);
  bool ReplaceByParts(NodeId id);
  NodeId JoinParts(const std::vector<Arg>& parts, bool sums, TypeId whole, NodeId like,
                   Lineage::Relation& relation);
  bool DecomposeLong(NodeId id);
  // Collectives.
  void BucketAll();
  bool CanStartTogether(const std::vector<NodeId>& members) const;
  class Bucket;
  // Whole layers.
  void DropLayer();
  void AddLayer();
  void AddInputsOfCopy(const Layer& layer, int64_t width, std::map<ValueId, ValueId>& copies,
                       Layer& copy);
  NodeId CloneInto(NodeId id, int64_t width, std::map<ValueId, ValueId>& copies);
  void AddResultsOfCopy(const std::set<NodeId>& nodes, const std::map<ValueId, ValueId>& copies,
                        bool sums);
  void MoveLayer();
  std::vector<size_t> InnerLayers(const std::vector<Layer>& layers) const;
  std::vector<StableId> RolesOf(const Layer& layer) const;
  void RedirectOutside(ValueId from, ValueId to, const std::set<NodeId>& inside);
  int64_t InnerWidth(const Layer& layer) const;
  TypeId Wider(TypeId id, int64_t width);
  void WidenLiterals(NodeId id, int64_t width);
  // Programs of other ranks.
  void CrossRank();
  void OneMoreOperator();
  void SwapCollectives();
  void OtherStage();

  bool IsPlain(NodeId id) const;
  bool IsPlainCall(NodeId id) const;
  bool IsFree(NodeId id) const { return !touched_.contains(id.index); }
  /// The node's type if it is a tensor.
  std::optional<Type> TensorOf(ValueId value) const;
  TypeId TypeIdOf(NodeId id) const { return graph_.value(graph_.result(id)).type; }
  std::vector<Use> UsesOf(ValueId value) const;
  /// The only user of a node's result; none: there are several, or none.
  NodeId OnlyUser(NodeId id) const;
  /// The node and those behind it, each read by the next one alone and of one type: `most` at most.
  std::vector<NodeId> ChainFrom(NodeId id, size_t most) const;
  /// A call at the cursor. `type`: of the result.
  NodeId Make(std::string_view op, std::span<const Arg> args, TypeId type, NodeId like);
  void RedirectUses(ValueId from, ValueId to, NodeId except);
  /// Nodes of `inside` read `to` where they read `from`.
  void RedirectInside(ValueId from, ValueId to, const std::vector<NodeId>& inside);
  /// Copies at the cursor: the first reads `to` where the first of the chain reads `from`, each
  /// other one the copy before it.
  std::vector<NodeId> CloneChain(const std::vector<NodeId>& chain, ValueId from, ValueId to);
  /// A call at the cursor with several results; the names of its elements begin with `piece`.
  NodeId MakeSplit(std::string_view op, std::span<const Arg> args, const std::vector<TypeId>& types,
                   std::string_view piece, NodeId like);
  /// What the graph returns. REQUIRES: it returns a list.
  std::vector<Arg> Results() const;
  void SetResults(const std::vector<Arg>& results);
  bool ReturnsList() const;
  size_t Random(size_t bound) { return random_() % bound; }

  StableId IdOf(NodeId id) const { return graph_.node(id).stable_id; }
  void Touch(NodeId id) { touched_.insert(id.index); }
  /// Begins a rewrite; Mark adds its nodes.
  void Begin() { lineage_.rewrites.emplace_back(); }
  void Mark(NodeId id) {
    Touch(id);
    lineage_.rewrites.back().push_back(IdOf(id));
  }

  Module& module_;
  Graph& graph_;
  Rewriter rewriter_;
  const double rate_;
  std::mt19937 random_;
  Lineage& lineage_;
  std::set<int32_t> touched_;
};

}  // namespace strata::bench
