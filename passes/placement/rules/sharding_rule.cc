#include "passes/placement/rules/sharding_rule.h"

#include <algorithm>
#include <iterator>
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
          FlexRules(), ImageRules(), LossRules(), IndexRules(), CreationRules(), OptimizerRules()})
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

/// Elementwise operators in place have the rules of the others. Null: there is none.
RuleFunction FindRule(std::string_view base) {
  if (const auto found = Rules().find(base); found != Rules().end()) return found->second;
  if (!base.ends_with('_')) return nullptr;
  base.remove_suffix(1);
  const auto found = std::ranges::find(PointwiseRules(), base, &RuleEntry::op);
  return found == PointwiseRules().end() ? nullptr : found->fill;
}

/// Others have names of ATen and other arguments: `prims.slice` cuts all dimensions.
bool IsKnownPrim(std::string_view op) {
  constexpr std::string_view kPrims[] = {"prims.convert_element_type.default", "prims.fma.default",
                                         "prims.iota.default", "prims.rev.default"};
  return std::ranges::find(kPrims, op) != std::end(kPrims);
}

}  // namespace

Result<ShardingRule> ShardingRuleOf(Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  const bool is_known =
      op.starts_with("aten.") || IsFlexOp(op) || op == kBlockMaskOp || IsKnownPrim(op);
  const RuleFunction fill = FindRule(BaseName(op));
  if (graph.node(node).kind != NodeKind::kCall || !is_known || fill == nullptr) {
    return Error(ErrorCode::kUnsupported, "no sharding rule for {}: {}", op, Where(graph, node));
  }
  auto builder = RuleBuilder::Create(graph, node);
  if (!builder) return std::move(builder).error().In(Where(graph, node));
  if (auto filled = fill(*builder); !filled)
    return std::move(filled).error().In(fmt::format("{}: {}", op, Where(graph, node)));
  return builder->Take();
}

}  // namespace strata
