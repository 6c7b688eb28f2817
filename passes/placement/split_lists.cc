#include "passes/placement/split_lists.h"

#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

void SplitNorms(Rewriter& rewriter, NodeId node) {
  Graph& graph = rewriter.graph();
  const std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  const auto listed = graph.elements(args[0]);
  const std::vector<Arg> tensors(listed.begin(), listed.end());
  std::vector<NamedArg> kwargs;
  if (args.size() > 2) kwargs.push_back({graph.module().Intern("dtype"), args[2]});
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
    kwargs.push_back(graph.kwarg(node, i));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ValueId norm = graph.result(node, i);
    std::vector<Arg> of_one = {tensors[i]};
    if (args.size() > 1) of_one.push_back(args[1]);
    const TypeId types[] = {graph.value(norm).type};
    const NodeId made = rewriter.Create({.op = "aten.linalg_vector_norm.default",
                                         .args = of_one,
                                         .kwargs = kwargs,
                                         .results = types},
                                        From{node});
    rewriter.ReplaceUses(norm, graph.result(made));
  }
}

void SplitUpdates(Rewriter& rewriter, NodeId node) {
  Graph& graph = rewriter.graph();
  const std::string op(graph.op(node));
  std::vector<std::vector<Arg>> lists;
  for (const Arg& list : graph.args(node))
    lists.emplace_back(graph.elements(list).begin(), graph.elements(list).end());
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
    kwargs.push_back(graph.kwarg(node, i));
  for (size_t i = 0; i < lists[0].size(); ++i) {
    std::vector<Arg> of_one;
    for (const std::vector<Arg>& list : lists) {
      std::vector<Arg> element;
      if (i < list.size()) element.push_back(list[i]);
      of_one.push_back(rewriter.MakeSpan(ArgKind::kList, element));
    }
    rewriter.Create({.op = op, .args = of_one, .kwargs = kwargs}, From{node});
  }
}

}  // namespace

void SplitLists(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  for (const NodeId node : graph.nodes().Snapshot()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view base = BaseName(graph.op(node));
    const bool is_norm = base == "_foreach_norm";
    const bool is_update = base == "_fused_adamw_" || base == "_fused_adam_";
    const auto args = graph.args(node);
    if (!(is_norm || is_update) || args.empty() || !args[0].is_span()) continue;
    if (is_update && graph.elements(args[0]).size() == 1) continue;
    rewriter.SetCursorBefore(node);
    is_norm ? SplitNorms(rewriter, node) : SplitUpdates(rewriter, node);
    rewriter.Erase(node);
  }
}

}  // namespace strata
