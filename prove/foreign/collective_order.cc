#include "prove/foreign/collective_order.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/foreign/rank_mesh.h"

namespace strata::prove {
namespace {

struct CalledCollective {
  const Graph* graph = nullptr;
  NodeId node;
  std::string text;  ///< "all_reduce(sum) of f32[4, 8]"
};

std::string TextOf(const Graph& graph, NodeId node) {
  std::string text(BaseName(graph.op(node)));
  if (const std::string_view reduce = ReduceOpOf(graph, node); !reduce.empty())
    text += fmt::format("({})", reduce);
  const TypeId type = graph.value(graph.operands(node)[0]).type;
  return type.valid() ? fmt::format("{} of {}", text, graph.module().types().ToString(type)) : text;
}

/// What a rank calls on a group, in the order in which its graphs run.
std::vector<CalledCollective> CallsOn(std::string_view group, const CompiledProgram& rank) {
  std::vector<CalledCollective> calls;
  for (const Graph* graph : {rank.forward, rank.backward}) {
    if (graph == nullptr) continue;
    for (const NodeId node : graph->nodes()) {
      const bool is_call = graph->node(node).kind == NodeKind::kCall &&
                           CollectiveOf(*graph, node) && GroupOf(*graph, node) == group;
      if (is_call) calls.push_back({graph, node, TextOf(*graph, node)});
    }
  }
  return calls;
}

/// Where the calls of two ranks diverge; none: nowhere.
std::optional<Finding> OtherCall(std::string_view group, const std::vector<CalledCollective>& first,
                                 int64_t first_rank, const std::vector<CalledCollective>& other,
                                 int64_t other_rank) {
  const auto [p, q] =
      std::ranges::mismatch(first, other, {}, &CalledCollective::text, &CalledCollective::text);
  if (p == first.end() && q == other.end()) return std::nullopt;
  const auto text = [](const auto& at, const auto& calls) {
    return at == calls.end() ? std::string("none") : at->text;
  };
  const CalledCollective& shown = q == other.end() ? *p : *q;
  Finding finding;
  finding.node = shown.graph->name(shown.node);
  finding.graph = shown.graph->name_text();
  finding.reference = p == first.end() ? "" : std::string(p->graph->name(p->node));
  finding.reference_graph = p == first.end() ? "" : std::string(p->graph->name_text());
  finding.what =
      fmt::format("collective {} of group '{}': rank {}: {}, rank {}: {}", p - first.begin(), group,
                  first_rank, text(p, first), other_rank, text(q, other));
  finding.diagnosis = {.kind = BugKind::kCollectiveOrder,
                       .reason = "ranks of a group call collectives in another order"};
  return finding;
}

}  // namespace

std::optional<Finding> FindOtherOrder(std::span<const CompiledProgram> ranks) {
  NamedGroups groups;
  std::vector<const Graph*> graphs;
  for (const Graph* CompiledProgram::* part :
       {&CompiledProgram::forward, &CompiledProgram::backward}) {
    graphs.clear();
    for (const CompiledProgram& rank : ranks)
      if (rank.*part != nullptr) graphs.push_back(rank.*part);
    if (graphs.size() == ranks.size()) groups.Add(graphs);
  }
  for (const auto& [group, members] : groups.all()) {
    const auto calls = CallsOn(group, ranks[static_cast<size_t>(members[0])]);
    for (const int64_t member : members) {
      const auto others = CallsOn(group, ranks[static_cast<size_t>(member)]);
      if (auto finding = OtherCall(group, calls, members[0], others, member)) return finding;
    }
  }
  return std::nullopt;
}

}  // namespace strata::prove
