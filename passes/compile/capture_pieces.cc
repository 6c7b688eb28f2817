#include "passes/compile/capture_pieces.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "ir/ops.h"
#include "passes/compile/cuda_graph.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

bool IsCall(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall;
}

/// Only gives memory another shape, or puts values where a collective reads them.
bool BuildsBuffer(const Graph& graph, NodeId node) {
  constexpr std::string_view kBuilders[] = {"cat",   "clone",         "copy",     "copy_",
                                            "empty", "empty_strided", "new_empty"};
  const std::string_view op = graph.op(node);
  return TraitsOf(op).view || std::ranges::find(kBuilders, BaseName(op)) != std::end(kBuilders);
}

class PieceFinder {
 public:
  PieceFinder(const Graph& graph, double capability) : graph_(graph), capability_(capability) {
    for (const NodeId node : graph.nodes())
      if (IsCall(graph, node)) calls_.push_back(node);
  }

  std::vector<NodeId> Run(int64_t min_nodes) {
    for (const NodeId node : calls_)
      if (CudaGraphObstacle(graph_, node, capability_)) outside_.insert(node);
    if (outside_.empty()) return {};
    AddCollectives();
    AddWritten();
    for (const NodeId node : calls_)
      if (graph_.node(node).stream != 0 || ReadsNumber(node)) outside_.insert(node);
    AddShortRuns(min_nodes);
    std::vector<NodeId> nodes;
    std::ranges::copy_if(calls_, std::back_inserter(nodes), [&](NodeId n) { return IsOutside(n); });
    return nodes;
  }

 private:
  bool IsOutside(NodeId node) const { return outside_.contains(node); }

  void AddCollectives() {
    std::set<NodeId> chain;
    for (auto node = calls_.rbegin(); node != calls_.rend(); ++node) {
      const std::vector<NodeId> users = UsersOf(graph_, *node);
      const bool only_builds =
          BuildsBuffer(graph_, *node) && !users.empty() &&
          std::ranges::all_of(users, [&](NodeId user) { return chain.contains(user); });
      const bool is_launch = TraitsOf(graph_.op(*node)).collective;
      if (is_launch || only_builds) chain.insert(*node);
      if (is_launch || only_builds || IsWait(graph_, *node)) outside_.insert(*node);
    }
  }

  /// The value whose memory this one shares.
  ValueId Owner(ValueId value) const { return OwnerOf(graph_, value); }

  /// The same memory in every run, where pieces read it in place.
  bool IsState(ValueId owner) const {
    const NodeId node = graph_.value(owner).def;
    const std::string_view kind = graph_.attribute(node, "input");
    return graph_.node(node).kind == NodeKind::kPlaceholder &&
           (kind == "parameter" || kind == "buffer" || kind == "state");
  }

  template <class Fn>
  void ForEachOwner(NodeId node, Fn&& fn) const {
    graph_.ForEachOperand(node, [&](ValueId value) { fn(Owner(value)); });
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      fn(Owner(graph_.result(node, i)));
  }

  /// The memory that a node writes to: its results that are operands show that, or else it may be
  /// any operand's.
  std::vector<ValueId> WrittenBy(NodeId node) const {
    const OpTraits traits = TraitsOf(graph_, node);
    if (traits.view || IsWait(graph_, node)) return {};
    std::vector<ValueId> owners;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId result = graph_.result(node, i);
      if (graph_.value(result).alias_of.valid()) owners.push_back(Owner(result));
    }
    if (owners.empty() && traits.mutates)
      graph_.ForEachOperand(node, [&](ValueId value) { owners.push_back(Owner(value)); });
    return owners;
  }

  void AddWritten() {
    std::set<ValueId> written;
    for (const NodeId node : calls_) {
      for (const ValueId owner : WrittenBy(node))
        if (!IsState(owner)) written.insert(owner);
    }
    for (const NodeId node : calls_) {
      ForEachOwner(node, [&](ValueId owner) {
        if (written.contains(owner)) outside_.insert(node);
      });
    }
  }

  bool ReadsNumber(NodeId node) const {
    bool reads = false;
    graph_.ForEachOperand(node, [&](ValueId value) {
      const TypeId type = graph_.value(value).type;
      const bool is_tensor =
          type.valid() && graph_.module().types()[type].kind == TypeKind::kTensor;
      const NodeId def = graph_.value(value).def;
      reads = reads || (!is_tensor && graph_.node(def).kind != NodeKind::kGetAttr);
    });
    return reads;
  }

  /// Runs between the nodes so far that compute too little: views alone compute nothing.
  void AddShortRuns(int64_t min_nodes) {
    const auto computes = [&](NodeId node) { return !TraitsOf(graph_.op(node)).view; };
    for (auto begin = calls_.begin(); begin != calls_.end();) {
      const auto end =
          std::find_if(begin, calls_.end(), [&](NodeId node) { return IsOutside(node); });
      if (std::count_if(begin, end, computes) < std::max<int64_t>(1, min_nodes))
        outside_.insert(begin, end);
      begin = std::find_if(end, calls_.end(), [&](NodeId node) { return !IsOutside(node); });
    }
  }

  const Graph& graph_;
  const double capability_;
  std::vector<NodeId> calls_;  // in order
  std::set<NodeId> outside_;
};

}  // namespace

std::vector<NodeId> NodesOutsideOfPieces(const Graph& graph, double capability, int64_t min_nodes) {
  return PieceFinder(graph, capability).Run(min_nodes);
}

}  // namespace strata
