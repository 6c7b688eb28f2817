#include "passes/compile/place_casts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "ir/by_node.h"
#include "ir/rewriter.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

bool IsCast(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall && graph.op(node) == "aten._to_copy.default" &&
         graph.args(node).size() == 1 && graph.args(node)[0].is_value();
}

class Placer {
 public:
  explicit Placer(Graph& graph)
      : graph_(graph), written_(WrittenMemory(graph)), order_(graph.nodes().Snapshot()) {
    position_ = PositionsOf(graph);
  }

  bool Run() {
    std::vector<bool> is_moved(order_.size(), false);
    for (const NodeId node : order_)
      is_moved[At(node)] = PlaceOf(node).has_value();
    std::vector<std::vector<NodeId>> before(order_.size());  // casts, by the place of a node
    for (const NodeId node : order_) {
      if (!is_moved[At(node)]) continue;
      size_t place = *PlaceOf(node);
      while (is_moved[place])
        ++place;
      before[place].push_back(node);
    }
    for (std::vector<NodeId>& casts : before) {
      std::ranges::stable_partition(casts, [&](NodeId cast) { return !CastsInput(cast); });
    }
    std::vector<NodeId> order;
    for (size_t place = 0; place < order_.size(); ++place) {
      order.insert(order.end(), before[place].begin(), before[place].end());
      if (!is_moved[place]) order.push_back(order_[place]);
    }
    if (order == order_) return false;
    Rewriter rewriter(graph_);
    for (size_t place = 0; place < order_.size(); ++place) {
      for (const NodeId cast : before[place])
        rewriter.MoveBefore(cast, order_[place]);
    }
    return true;
  }

 private:
  size_t At(NodeId node) const { return static_cast<size_t>(position_[node]); }
  ValueId Operand(NodeId cast) const { return graph_.args(cast)[0].value(); }

  bool CastsInput(NodeId cast) const {
    return graph_.node(graph_.value(Operand(cast)).def).kind == NodeKind::kPlaceholder;
  }

  /// The place of the node before which a cast belongs; none: it stays. A cast of a cast, too.
  std::optional<size_t> PlaceOf(NodeId cast) const {
    if (!IsCast(graph_, cast) || written_.contains(OwnerOf(graph_, Operand(cast)))) return {};
    const NodeId source = graph_.value(Operand(cast)).def;
    if (IsCast(graph_, source)) return {};
    bool is_output = true;
    size_t first = order_.size();  // reader
    for (const Use use : graph_.uses(graph_.result(cast))) {
      if (IsCast(graph_, use.user)) return {};
      is_output = is_output && use.user == graph_.output();
      first = std::min(first, At(use.user));
    }
    if (first == order_.size()) return {};
    if (CastsInput(cast)) return first;
    return is_output ? std::optional(At(source) + 1) : std::nullopt;
  }

  Graph& graph_;
  std::set<ValueId> written_;
  std::vector<NodeId> order_;
  IdVector<NodeId, int32_t> position_;
};

}  // namespace

Result<Changed> PlaceCasts::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs())
    changed |= Placer(module.graph(id)).Run();
  return Changed(changed);
}

}  // namespace strata
