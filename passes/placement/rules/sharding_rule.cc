#include "passes/placement/rules/sharding_rule.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/flex/flex_node.h"
#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

const std::map<std::string_view, RuleFunction>& Rules() {
  static const std::map<std::string_view, RuleFunction> rules = [] {
    std::map<std::string_view, RuleFunction> all;
    for (const auto family :
         {PointwiseRules(), ViewRules(), ProductRules(), ReductionRules(), AttentionRules(),
          FlexRules(), LossRules(), IndexRules(), CreationRules(), OptimizerRules()})
      for (const RuleEntry& entry : family)
        all.emplace(entry.op, entry.fill);
    return all;
  }();
  return rules;
}

/// "mm_3 (module layers.0.attention.wq, line 29 of decoder.h)".
std::string Where(const Graph& graph, NodeId node) {
  const Module& module = graph.module();
  std::string where = fmt::format("{} in graph {}", graph.name(node), graph.name_text());
  if (graph.node(node).module.valid())
    where += fmt::format(", module {}", module.str(graph.node(node).module));
  if (const LocId loc = graph.node(node).loc; loc.valid())
    where += fmt::format(", {}:{}", module.str(module.loc(loc).file), module.loc(loc).line);
  return where;
}

}  // namespace

Result<ShardingRule> ShardingRuleOf(Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  const auto found = Rules().find(BaseName(op));
  const bool is_known = op.starts_with("aten.") || IsFlexOp(op) || op == kBlockMaskOp;
  if (graph.node(node).kind != NodeKind::kCall || !is_known || found == Rules().end()) {
    return Error(ErrorCode::kUnsupported, "no sharding rule for {}: {}", op, Where(graph, node));
  }
  auto builder = RuleBuilder::Create(graph, node);
  if (!builder) return std::move(builder).error().In(Where(graph, node));
  if (auto filled = found->second(*builder); !filled)
    return std::move(filled).error().In(fmt::format("{}: {}", op, Where(graph, node)));
  return builder->Take();
}

std::vector<std::string_view> OpsWithShardingRules() {
  std::vector<std::string_view> ops;
  for (const auto& [op, fill] : Rules())
    ops.push_back(op);
  return ops;
}

}  // namespace strata
