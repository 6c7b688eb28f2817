#include "passes/memory/min_cut.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "ir/by_node.h"
#include "passes/core/written_memory.h"
#include "passes/memory/max_flow.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

bool IsLossBackward(const Graph& graph, NodeId node) {
  const std::string_view module = ModuleOf(graph, node);
  return IsBackward(graph, node) && (module == "loss" || module == "lm_head");
}

/// Readers that need the result when the loss is done.
bool IsReadByBackward(const Graph& graph, NodeId node) {
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    for (const Use use : graph.uses(graph.result(node, i)))
      if (IsBackward(graph, use.user) && !IsLossBackward(graph, use.user)) return true;
  }
  return false;
}

class Network {
 public:
  explicit Network(const Graph& graph)
      : graph_(graph), distance_(ByNode(graph, kFar)), flow_(2 * graph.node_bound() + 2) {}

  Result<IdVector<NodeId, bool>> Run(const std::function<bool(NodeId)>& must_save) {
    MeasureDistances();
    FindLargest();
    for (const NodeId node : graph_.nodes()) {
      if (!IsForward(node)) continue;
      flow_.AddEdge(In(node), Out(node), CostOf(node));
      if (IsInput(node) || (!IsView(node) && must_save(node)))
        flow_.AddEdge(Source(), In(node), kInfinite);
      if (IsReadByBackward(graph_, node)) flow_.AddEdge(Out(node), Sink(), kInfinite);
      AddReaders(node);
    }
    if (flow_.Run(Source(), Sink()) >= kInfinite) {
      return Error(
          "no set of results can be saved: graph {}: backward needs results of unknown type, take "
          "another policy",
          graph_.name_text());
    }
    IdVector<NodeId, bool> saved = ByNode<bool>(graph_);
    for (const NodeId node : graph_.nodes()) {
      if (!IsForward(node) || IsInput(node)) continue;
      saved[node] = IsOnSourceSide(In(node)) && !IsOnSourceSide(Out(node));
    }
    return saved;
  }

 private:
  static constexpr int64_t kInfinite = FlowNetwork::kInfinite;
  static constexpr int32_t kFar = 100;

  int32_t In(NodeId node) const { return 2 * node.index; }
  int32_t Out(NodeId node) const { return 2 * node.index + 1; }
  int32_t Source() const { return 2 * graph_.node_bound(); }
  int32_t Sink() const { return 2 * graph_.node_bound() + 1; }
  bool IsOnSourceSide(int32_t vertex) const {
    return flow_.source_side()[static_cast<size_t>(vertex)];
  }
  bool IsForward(NodeId node) const {
    return graph_.node(node).kind != NodeKind::kOutput && !IsBackward(graph_, node);
  }
  bool IsInput(NodeId node) const { return graph_.node(node).kind != NodeKind::kCall; }

  bool IsView(NodeId node) const {
    if (graph_.node(node).num_results == 0 || Mutates(graph_, node)) return false;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      if (OwnerOf(graph_, graph_.result(node, i)) == graph_.result(node, i)) return false;
    return true;
  }

  template <class Fn>
  void ForEachForwardReader(NodeId node, Fn&& fn) const {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      for (const Use use : graph_.uses(graph_.result(node, i)))
        if (IsForward(use.user)) fn(use.user);
    }
  }

  void AddReaders(NodeId node) {
    ForEachForwardReader(node,
                         [&](NodeId reader) { flow_.AddEdge(Out(node), In(reader), kInfinite); });
  }

  void MeasureDistances() {
    const std::vector<NodeId> order = graph_.nodes().Snapshot();
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      if (!IsForward(*node)) continue;
      int32_t& distance = distance_[*node];
      if (IsReadByBackward(graph_, *node)) distance = 0;
      ForEachForwardReader(
          *node, [&](NodeId reader) { distance = std::min(distance, distance_[reader] + 1); });
    }
  }

  void FindLargest() {
    for (const NodeId node : graph_.nodes()) {
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        const TypeId type = graph_.value(graph_.result(node, i)).type;
        if (type.valid())
          largest_ = std::max(largest_, graph_.module().types().Bytes(type).value_or(0));
      }
    }
  }

  /// Of saving its results. A tensor of data-dependent size counts as the largest of known size.
  int64_t CostOf(NodeId node) const {
    if (IsInput(node)) return 0;
    if (IsView(node)) return kInfinite;
    int64_t bytes = 0;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const Value& value = graph_.value(graph_.result(node, i));
      if (!value.type.valid()) return kInfinite;
      const Type& type = graph_.module().types()[value.type];
      if (type.kind == TypeKind::kOpaque) return kInfinite;
      const int64_t unknown = type.kind == TypeKind::kSymInt ? 8 : largest_;
      bytes += graph_.module().types().Bytes(value.type).value_or(unknown);
    }
    const int32_t distance = std::clamp(distance_[node], 1, kFar);
    const double cost = static_cast<double>(std::max<int64_t>(bytes, 1)) * std::pow(1.1, distance);
    return static_cast<int64_t>(std::min(cost, static_cast<double>(kInfinite) / 1e6));
  }

  const Graph& graph_;
  IdVector<NodeId, int32_t> distance_;  // to the nearest reader in backward
  int64_t largest_ = 1;                 // bytes of a result
  FlowNetwork flow_;
};

}  // namespace

Result<IdVector<NodeId, bool>> NodesToSave(const Graph& graph,
                                           const std::function<bool(NodeId)>& must_save) {
  return Network(graph).Run(must_save);
}

}  // namespace strata
