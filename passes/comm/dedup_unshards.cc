#include "passes/comm/dedup_unshards.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/by_node.h"
#include "ir/rewriter.h"
#include "passes/core/fsdp_patterns.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Compares what two values are computed from.
class Chains {
 public:
  explicit Chains(const Graph& graph) : graph_(graph) {}

  bool Equal(ValueId a, ValueId b) {
    if (a == b) return true;
    const NodeId x = graph_.value(a).def, y = graph_.value(b).def;
    const bool is_call = graph_.node(x).kind == NodeKind::kCall;
    if (!is_call || graph_.result_index(a) != graph_.result_index(b)) return false;
    if (const auto known = equal_.find({x, y}); known != equal_.end()) return known->second;
    return equal_[{x, y}] = EqualCalls(x, y);
  }

 private:
  bool EqualCalls(NodeId x, NodeId y) {
    const Node &a = graph_.node(x), &b = graph_.node(y);
    if (a.kind != b.kind || a.op != b.op || a.num_kwargs != b.num_kwargs) return false;
    for (size_t i = 0; i < a.num_kwargs; ++i) {
      const NamedArg one = graph_.kwarg(x, i), other = graph_.kwarg(y, i);
      if (one.name != other.name || !EqualArgs(one.value, other.value)) return false;
    }
    return EqualLists(graph_.args(x), graph_.args(y));
  }

  bool EqualLists(std::span<const Arg> a, std::span<const Arg> b) {
    return std::ranges::equal(a, b, [&](const Arg& x, const Arg& y) { return EqualArgs(x, y); });
  }

  bool EqualArgs(const Arg& a, const Arg& b) {
    if (a.kind() != b.kind()) return false;
    if (a.is_value()) return Equal(a.value(), b.value());
    if (a.is_span()) return EqualLists(graph_.elements(a), graph_.elements(b));
    switch (a.kind()) {
      case ArgKind::kNone:
        return true;
      case ArgKind::kInt:
      case ArgKind::kBool:
        return a.as_int() == b.as_int();
      case ArgKind::kFloat:
        return a.as_float() == b.as_float();
      default:
        return a.str() == b.str();  // ids of interned things
    }
  }

  const Graph& graph_;
  std::map<std::pair<NodeId, NodeId>, bool> equal_;
};

/// Removes what makes `value`, as far as nothing else reads it. Views of its memory become views of
/// `instead`.
void EraseChain(Rewriter& rewriter, ValueId value, ValueId instead) {
  const Graph& graph = rewriter.graph();
  std::vector<NodeId> open = {graph.value(value).def};
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    const bool is_done = graph.node(node).kind != NodeKind::kCall || graph.HasUses(node);
    if (is_done) continue;
    for (const ValueId operand : graph.operands(node))
      open.push_back(graph.value(operand).def);
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      rewriter.ReplaceUses(graph.result(node, i), instead);
    rewriter.Erase(node);
  }
}

Result<bool> DedupIn(Graph& graph, bool across_phases) {
  bool changed = false;
  const IdVector<NodeId, int32_t> order = PositionsOf(graph);
  Rewriter rewriter(graph);
  for (const NodeId placeholder : graph.placeholders()) {
    STRATA_TRY(std::vector<ValueId> outputs, UnshardOutputs(graph, placeholder));
    if (outputs.size() < 2) continue;
    const auto def = [&](ValueId value) { return graph.value(value).def; };
    std::ranges::sort(outputs, {}, [&](ValueId value) { return order[def(value)]; });
    Chains chains(graph);
    std::vector<ValueId> kept;
    for (const ValueId output : outputs) {
      const auto same = std::ranges::find_if(kept, [&](ValueId first) {
        const bool is_same_phase = IsBackward(graph, def(first)) == IsBackward(graph, def(output));
        return (across_phases || is_same_phase) && chains.Equal(first, output);
      });
      if (same == kept.end()) {
        kept.push_back(output);
        continue;
      }
      rewriter.ReplaceUses(output, *same);
      EraseChain(rewriter, output, *same);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

void DedupUnshards::Options::Bind(OptionList& list) {
  list.Add("across_phases", across_phases,
           "backward reads what forward gathered, which is then kept in between");
}

Result<Changed> DedupUnshards::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const bool deduplicated, DedupIn(module.graph(id), options_.across_phases));
    changed |= deduplicated;
  }
  return Changed(changed);
}

}  // namespace strata
