#include "passes/flex/annotate_flex.h"

#include <span>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/flex/flex_node.h"

namespace strata {
namespace {

constexpr std::string_view kKey = "custom.compile_with_inductor";

/// `{'inductor_configs': CONFIG}`, or `{}` without a configuration.
std::string Annotation(std::string_view config) {
  return config.empty() ? "{}" : fmt::format("{{'inductor_configs': {}}}", config);
}

bool Mark(Rewriter& rewriter, NodeId node, std::string_view annotation) {
  if (rewriter.graph().attribute(node, kKey) == annotation) return false;
  rewriter.SetAttribute(node, kKey, annotation);
  return true;
}

bool MarkBody(Graph& body, std::string_view annotation) {
  bool changed = false;
  Rewriter rewriter(body);
  for (const NodeId node : body.nodes())
    changed |= Mark(rewriter, node, annotation);
  return changed;
}

}  // namespace

Result<Changed> AnnotateFlex::Run(Module& module) {
  const std::string annotation = Annotation(options_.config);
  const std::string mask_annotation = Annotation(options_.mask_config);
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      if (!IsFlexOp(graph.op(node))) continue;
      Rewriter rewriter(graph);
      changed |= Mark(rewriter, node, annotation);
      graph.ForEachOperand(node, [&](ValueId operand) {
        const auto body = BodyNamedBy(graph, Arg(operand));
        if (!body) return;
        changed |= Mark(rewriter, graph.value(operand).def, annotation);
        changed |= MarkBody(module.graph(*body), mask_annotation);
      });
    }
  }
  return changed ? Changed::kYes : Changed::kNo;
}

}  // namespace strata
