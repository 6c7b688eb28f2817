#include "passes/expert/chunk_regions.h"

#include <algorithm>
#include <utility>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/written_memory.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Whether a number is data-dependent, and does not count chunked tokens.
bool IsDataDependent(const Module& module, DimId dim, const ChunkSymbols& symbols) {
  const DimTable& dims = module.dims();
  if (dims.kind(dim) == DimKind::kConst) return false;
  if (dims.kind(dim) != DimKind::kSymbol) {
    return std::ranges::any_of(dims.operands(dim), [&](DimId operand) {
      return IsDataDependent(module, operand, symbols);
    });
  }
  const Symbol* symbol = dims.FindSymbol(module.strings().Find(dims.name(dim)));
  return symbol != nullptr && !symbol->backed && !symbols.Mentions(dim);
}

/// Plans one direction.
class RegionFinder {
 public:
  RegionFinder(const Graph& graph, const ChunkRoots& roots, const ChunkSymbols& symbols,
               const ChunkCopies& copies, bool is_backward)
      : graph_(graph),
        roots_(roots),
        symbols_(symbols),
        copies_(copies),
        is_backward_(is_backward),
        order_(graph.nodes().Snapshot()),
        candidate_(ByNode<StrId>(graph)),
        body_(ByNode<StrId>(graph)) {}

  /// By node: the root in whose body it is, or none.
  Result<IdVector<NodeId, StrId>> Run(const GradientBoundaries& gradients) {
    FindCandidates();
    if (is_backward_) AddNodesWithoutModule();
    do {
      STRATA_RETURN_IF_ERROR(KeepInfluenced());
    } while (AddOwnedShapes());
    KeepNeeded();
    for (const NodeId node : gradients.suffix)
      if (IsBackward(graph_, node) == is_backward_) body_[node] = {};
    return std::move(body_);
  }

 private:
  NodeId Def(ValueId value) const { return graph_.value(value).def; }
  bool IsInDirection(NodeId node) const {
    return graph_.node(node).kind == NodeKind::kCall && IsBackward(graph_, node) == is_backward_ &&
           graph_.attribute(node, kChunkRoleAttribute).empty();
  }
  bool HasModule(NodeId node) const { return !ModuleOf(graph_, node).empty(); }

  void FindCandidates() {
    for (const NodeId node : order_)
      if (IsInDirection(node)) candidate_[node] = roots_.RootOf(graph_, node);
  }

  template <class Fn>
  void ForEachNeighbour(NodeId node, Fn&& fn) const {
    graph_.ForEachOperand(node, [&](ValueId operand) { fn(Def(operand), operand); });
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      for (const Use use : graph_.uses(graph_.result(node, i)))
        fn(use.user, graph_.result(node, i));
  }

  /// The root that a node without module belongs to: it is next to nodes of that root, and to no
  /// other node that has a module.
  StrId RootBetween(NodeId node) const {
    StrId root;
    bool is_mixed = false;
    ForEachNeighbour(node, [&](NodeId neighbour, ValueId value) {
      const bool is_source = copies_.contains(value) && Def(value) == neighbour;
      const StrId anchor = is_source ? roots_.RootOf(graph_, neighbour) : candidate_[neighbour];
      if (!anchor.valid()) return;
      is_mixed |= root.valid() && anchor != root;
      root = anchor;
    });
    ForEachNeighbour(node, [&](NodeId neighbour, ValueId) {
      is_mixed |= HasModule(neighbour) && roots_.RootOf(graph_, neighbour) != root;
    });
    return is_mixed ? StrId{} : root;
  }

  void AddNodesWithoutModule() {
    std::vector<NodeId> open;
    const auto consider = [&](NodeId node) {
      if (!HasModule(node) && IsInDirection(node) && !candidate_[node].valid() &&
          !TraitsOf(graph_.op(node)).collective) {
        open.push_back(node);
      }
    };
    for (const NodeId node : order_)
      consider(node);
    std::ranges::reverse(open);
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (candidate_[node].valid()) continue;
      candidate_[node] = RootBetween(node);
      if (!candidate_[node].valid()) continue;
      ForEachNeighbour(node, [&](NodeId neighbour, ValueId) { consider(neighbour); });
    }
  }

  Status KeepInfluenced() {
    for (const NodeId node : order_) {
      const StrId root = candidate_[node];
      if (!root.valid() || IsSizeComputation(graph_, node, symbols_)) continue;
      bool is_influenced = false;
      ValueId opposite;
      graph_.ForEachOperand(node, [&](ValueId operand) {
        const NodeId def = Def(operand);
        const bool is_own = candidate_[def] == root;
        const bool is_tensor = IsTensor(graph_.module(), graph_.value(operand).type);
        is_influenced |= body_[def] == root || copies_.contains(operand) ||
                         (!is_own && is_tensor && symbols_.Carries(graph_, operand));
        const bool is_call = graph_.node(def).kind == NodeKind::kCall;
        if (!is_backward_ && is_call && is_tensor && IsBackward(graph_, def)) opposite = operand;
      });
      if (opposite.valid()) {
        return Error(
            "crossed into the opposite graph direction: graph {}: forward node {} of {} reads {}, "
            "which backward computes: take another module_fqn",
            graph_.name_text(), graph_.name(node), graph_.module().str(root),
            graph_.value_name(opposite));
      }
      if (is_influenced) body_[node] = root;
    }
    return Ok();
  }

  bool DependsOnChunk(NodeId node) const {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      if (symbols_.Carries(graph_, graph_.result(node, i))) return true;
    return false;
  }

  /// Makers of tensors from shapes alone that only the module reads, and bodies of it, bottom up:
  /// users come first. Returns whether there are further nodes of the module that read them.
  bool AddOwnedShapes() {
    bool influences_others = false;
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      const StrId root = candidate_[*node];
      if (!root.valid() || body_[*node].valid() || !DependsOnChunk(*node) ||
          IsSizeComputation(graph_, *node, symbols_)) {
        continue;
      }
      bool is_owned = false, is_shared = false, has_others = false;
      for (size_t i = 0; i < graph_.node(*node).num_results; ++i) {
        for (const Use use : graph_.uses(graph_.result(*node, i))) {
          if (!IsSemanticUser(graph_, use.user)) continue;
          // Backward of the root has what forward made for each chunk.
          const bool is_backward_of_root = !is_backward_ && IsBackward(graph_, use.user) &&
                                           roots_.RootOf(graph_, use.user) == root;
          const bool is_own = body_[use.user] == root || is_backward_of_root;
          const bool is_other = !is_own && candidate_[use.user] == root &&
                                !IsSizeComputation(graph_, use.user, symbols_);
          (is_own ? is_owned : is_other ? has_others : is_shared) = true;
        }
      }
      if (!is_owned || is_shared) continue;
      body_[*node] = root;
      influences_others |= has_others;
    }
    return influences_others;
  }

  /// Keeps what writes, has effects, or what something outside reads, and what these need.
  void KeepNeeded() {
    const IdVector<NodeId, StrId> all = body_;
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      const StrId root = body_[*node];
      if (!root.valid()) continue;
      bool is_needed = IsImpure(graph_, *node);
      for (size_t i = 0; !is_needed && i < graph_.node(*node).num_results; ++i) {
        for (const Use use : graph_.uses(graph_.result(*node, i))) {
          const bool is_own = all[use.user] == root;
          is_needed |= is_own ? body_[use.user] == root : IsSemanticUser(graph_, use.user);
        }
      }
      if (!is_needed) body_[*node] = {};
    }
  }

  const Graph& graph_;
  const ChunkRoots& roots_;
  const ChunkSymbols& symbols_;
  const ChunkCopies& copies_;
  const bool is_backward_;
  const std::vector<NodeId> order_;
  IdVector<NodeId, StrId> candidate_;  // the root whose module it is in
  IdVector<NodeId, StrId> body_;
};

}  // namespace

bool IsSemanticUser(const Graph& graph, NodeId user) {
  return user == graph.output() || graph.HasUses(user) || Mutates(graph, user);
}

bool IsSizeComputation(const Graph& graph, NodeId node, const ChunkSymbols& symbols) {
  if (graph.node(node).num_results == 0) return false;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const TypeId type = graph.value(graph.result(node, i)).type;
    if (!type.valid() || graph.module().types()[type].kind != TypeKind::kSymInt) return false;
    if (IsDataDependent(graph.module(), graph.module().types()[type].dim, symbols)) return false;
  }
  return true;
}

Result<ChunkPlan> PlanChunks(const Graph& graph, const ChunkRoots& roots,
                             const ChunkSymbols& symbols, const GradientBoundaries& gradients,
                             const ChunkCopies& copies) {
  ChunkPlan plan;
  plan.region_of = ByNode(graph, -1);
  STRATA_TRY(const auto forward, RegionFinder(graph, roots, symbols, copies, false).Run(gradients));
  STRATA_TRY(const auto backward, RegionFinder(graph, roots, symbols, copies, true).Run(gradients));
  std::unordered_map<StrId, int32_t> index[2];
  for (const NodeId node : graph.nodes()) {
    const bool is_backward = backward[node].valid();
    const StrId root = is_backward ? backward[node] : forward[node];
    if (!root.valid()) continue;
    const auto [found, is_new] =
        index[is_backward].try_emplace(root, static_cast<int32_t>(plan.regions.size()));
    if (is_new) plan.regions.push_back({.root = root, .is_backward = is_backward, .body = {}});
    plan.regions[static_cast<size_t>(found->second)].body.push_back(node);
    plan.region_of[node] = found->second;
  }
  return plan;
}

}  // namespace strata
