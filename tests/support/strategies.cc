#include "tests/support/strategies.h"

#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "passes/placement/redistribution.h"
#include "passes/placement/rules/sharding_rule.h"
#include "passes/placement/strategies.h"
#include "tests/support/graphs.h"

namespace strata::testing {
namespace {

constexpr std::string_view kRanks = "ranks=2";

std::vector<std::string> Texts(const Module& module, const std::vector<Placement>& placements) {
  std::vector<std::string> texts;
  for (const Placement& placement : placements)
    texts.push_back(PlacementsText(module, {placement}));
  return texts;
}

class Placer {
 public:
  Placer(Module& module, const TextStrategy& strategy)
      : module_(module),
        graph_(*module.FindGraph("g")),
        strategy_(strategy),
        call_(CallOf(graph_)),
        rewriter_(graph_) {}

  void Run() {
    for (const NodeId node : graph_.nodes().Snapshot())
      if (node != call_) ReplicateResults(node);
    PlaceOperands();
    for (size_t i = 0; i < graph_.node(call_).num_results; ++i) {
      Place(graph_.result(call_, i), Parse(strategy_.results[i]));
      rewriter_.SetAlias(graph_.result(call_, i), {});
    }
    rewriter_.SetCursorToEnd();
    for (const ValueId output : graph_.operands(graph_.output()))
      Replace(output, Move(output, "R"), graph_.output());
    rewriter_.SetAttribute(graph_.output(), kMeshAttribute, kRanks);
  }

 private:
  Placements Parse(const std::string& text) {
    return OrDie(ParsePlacements(module_, text, OrDie(Mesh::Parse(kRanks))));
  }

  void Place(ValueId value, const Placements& placements) {
    if (const TypeId type = graph_.value(value).type; type.valid())
      rewriter_.SetType(value, WithPlacements(module_, type, placements));
  }

  void ReplicateResults(NodeId node) {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      Place(graph_.result(node, i), Placements(1));
  }

  ValueId Move(ValueId value, const std::string& text) {
    const Arg args[] = {Arg(value), Arg::String(module_.Intern(text))};
    const TypeId types[] = {WithPlacements(module_, graph_.value(value).type, Parse(text))};
    return graph_.result(rewriter_.Create({.op = kRedistributeOp, .args = args, .results = types},
                                          From{graph_.value(value).def}));
  }

  void Replace(ValueId value, ValueId by, NodeId user) {
    const std::vector<Use> uses(graph_.uses(value).begin(), graph_.uses(value).end());
    for (const Use use : uses)
      if (use.user == user) rewriter_.ReplaceUse(use, by);
  }

  void PlaceOperands() {
    rewriter_.SetCursorBefore(call_);
    const std::vector<ValueId> operands = graph_.operands(call_);
    for (size_t i = 0; i < operands.size(); ++i)
      if (strategy_.operands[i] != "R")
        Replace(operands[i], Move(operands[i], strategy_.operands[i]), call_);
  }

  Module& module_;
  Graph& graph_;
  const TextStrategy& strategy_;
  const NodeId call_;
  Rewriter rewriter_;
};

}  // namespace

std::string TextStrategy::Text() const {
  return fmt::format("{} to {}", fmt::join(operands, " "), fmt::join(results, " "));
}

NodeId CallOf(const Graph& graph) {
  return graph.value(graph.operands(graph.output())[0]).def;
}

std::vector<TextStrategy> AllStrategies(std::string_view body) {
  auto module = ParseBody(body);
  Graph& graph = *module->FindGraph("g");
  const ShardingRule rule = OrDie(ShardingRuleOf(graph, CallOf(graph)));
  const std::vector<int64_t> sizes = FactorSizes(*module, rule);
  std::vector<TextStrategy> all;
  const auto add = [&](const std::vector<Placement>& now, auto is_wanted) {
    for (const AxisStrategy& strategy : AxisStrategies(*module, rule, sizes, 2, now))
      if (is_wanted(strategy))
        all.push_back({Texts(*module, strategy.operands), Texts(*module, strategy.results)});
  };
  add(std::vector<Placement>(rule.operands.size()), [](const AxisStrategy&) { return true; });
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    std::vector<Placement> now(rule.operands.size());
    now[i] = Partial(module->Intern("sum"));
    add(now, [&](const AxisStrategy& strategy) { return IsPartial(strategy.operands[i]); });
  }
  return all;
}

std::unique_ptr<Module> PlacedBy(std::string_view body, const TextStrategy& strategy) {
  auto module = ParseBody(body);
  Placer(*module, strategy).Run();
  return module;
}

}  // namespace strata::testing
