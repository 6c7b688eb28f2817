#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "ir/flagged_writes.h"
#include "ir/module.h"
#include "ir/op_name.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// Calls `fn` for each body that a node names: as an argument, or as an attribute that is one.
template <class Fn>
void ForEachBody(const Graph& graph, NodeId node, Fn&& fn) {
  const auto visit = [&](NodeId referrer) {
    for (const Arg& arg : graph.args(referrer))
      if (arg.kind() == ArgKind::kGraph) fn(graph.module().graph(arg.graph()));
  };
  visit(node);
  graph.ForEachOperand(node, [&](ValueId operand) {
    const NodeId def = graph.value(operand).def;
    if (graph.node(def).kind == NodeKind::kGetAttr) visit(def);
  });
}

// Which nodes must stay; remembers what it found out of bodies, that nest.
class Purity {
 public:
  explicit Purity(const Module& module) : module_(module) {}

  bool IsImpure(const Graph& graph, NodeId node) {
    switch (graph.node(node).kind) {
      case NodeKind::kPlaceholder:
      case NodeKind::kOutput:
      case NodeKind::kCallMethod:
      case NodeKind::kCallModule:
        return true;
      case NodeKind::kGetAttr:
      case NodeKind::kErased:
        return false;
      case NodeKind::kCall: {
        const OpTraits traits = TraitsOf(graph, node);
        if (traits.mutates || traits.effectful || traits.random) return true;
        // An operator states its effects in its schema; a function of Python may do anything.
        if (!traits.known && SplitOpName(graph.op(node)).overload.empty()) return true;
        return RunsImpureBody(graph, node);
      }
    }
    return true;
  }

 private:
  bool RunsImpureBody(const Graph& graph, NodeId node) {
    bool found = false;
    ForEachBody(graph, node, [&](const Graph& body) { found = found || IsImpureBody(body.id()); });
    return found;
  }

  bool IsImpureBody(GraphId id) {
    bodies_.resize(module_.num_graphs());
    std::optional<bool>& impure = bodies_[static_cast<size_t>(id.index)];
    if (impure) return *impure;
    const Graph& body = module_.graph(id);
    impure = std::ranges::any_of(body.nodes(), [&](NodeId node) {
      const NodeKind kind = body.node(node).kind;
      return kind != NodeKind::kPlaceholder && kind != NodeKind::kOutput && IsImpure(body, node);
    });
    return *impure;
  }

  const Module& module_;
  std::vector<std::optional<bool>> bodies_;
};

/// Traits of a call by its operator and its results, without its bodies.
OpTraits OwnTraitsOf(const Graph& graph, NodeId node) {
  OpTraits traits = TraitsOf(graph.op(node));
  traits.mutates = traits.mutates || WritesByFlag(graph, node);
  if (traits.known) return traits;
  bool returns_nothing = true;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const Value& result = graph.value(graph.result(node, i));
    returns_nothing = returns_nothing && !result.type.valid() && result.num_uses == 0;
  }
  traits.mutates = traits.mutates || returns_nothing;
  return traits;
}

/// Whether a body of a higher-order operator writes to something: to an operand, for all that is
/// known. Bodies nest and repeat: each is visited once.
bool RunsBodyThatWrites(const Graph& graph, NodeId node, std::set<GraphId>& seen) {
  if (!graph.op(node).starts_with("higher_order.")) return false;
  bool writes = false;
  ForEachBody(graph, node, [&](const Graph& body) {
    if (writes || !seen.insert(body.id()).second) return;
    writes = std::ranges::any_of(body.nodes(), [&](NodeId inner) {
      return body.node(inner).kind == NodeKind::kCall &&
             (OwnTraitsOf(body, inner).mutates || RunsBodyThatWrites(body, inner, seen));
    });
  });
  return writes;
}

}  // namespace

OpTraits TraitsOf(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return {};
  OpTraits traits = OwnTraitsOf(graph, node);
  std::set<GraphId> seen;
  traits.mutates = traits.mutates || RunsBodyThatWrites(graph, node, seen);
  return traits;
}

bool IsImpure(const Graph& graph, NodeId node) {
  return Purity(graph.module()).IsImpure(graph, node);
}

}  // namespace strata
