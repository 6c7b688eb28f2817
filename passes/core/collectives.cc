#include "passes/core/collectives.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "ir/ops.h"

namespace strata {
namespace {

constexpr std::array<std::pair<std::string_view, CollectiveKind>, 9> kLaunches = {{
    {"_c10d_functional.all_gather_into_tensor", CollectiveKind::kAllGather},
    {"_c10d_functional.all_gather_into_tensor_out", CollectiveKind::kAllGather},
    {"_c10d_functional.all_reduce", CollectiveKind::kAllReduce},
    {"_c10d_functional.all_reduce_", CollectiveKind::kAllReduce},
    {"_c10d_functional.all_to_all_single", CollectiveKind::kAllToAll},
    {"_c10d_functional.broadcast", CollectiveKind::kBroadcast},
    {"_c10d_functional.reduce_scatter_tensor", CollectiveKind::kReduceScatter},
    {"_c10d_functional.reduce_scatter_tensor_out", CollectiveKind::kReduceScatter},
    {"_c10d_functional_autograd.all_to_all_single", CollectiveKind::kAllToAll},
}};

/// The group is the last positional argument of each launch.
uint32_t GroupSlot(const Graph& graph, NodeId launch) {
  const Node& node = graph.node(launch);
  return node.args_begin + node.num_args - 1;
}

}  // namespace

std::optional<CollectiveKind> CollectiveOf(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (graph.node(node).kind != NodeKind::kCall || !op.starts_with("_c10d_functional"))
    return std::nullopt;
  for (const auto& [base, kind] : kLaunches)
    if (IsOverloadOf(op, base)) return kind;
  return std::nullopt;
}

bool IsCollective(const Graph& graph, NodeId node, CollectiveKind kind) {
  return CollectiveOf(graph, node) == kind;
}

bool IsWait(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall &&
         IsOverloadOf(graph.op(node), "_c10d_functional.wait_tensor");
}

std::string_view GroupOf(const Graph& graph, NodeId launch) {
  if (graph.args(launch).empty()) return {};
  const Arg& group = graph.slot(GroupSlot(graph, launch));
  return group.kind() == ArgKind::kString ? graph.module().str(group.str()) : std::string_view();
}

void SetGroup(Rewriter& rewriter, NodeId launch, std::string_view group) {
  Graph& graph = rewriter.graph();
  rewriter.SetSlot(launch, GroupSlot(graph, launch), Arg::String(graph.module().Intern(group)));
}

int64_t GroupSizeOf(const Graph& graph, NodeId launch) {
  const auto args = graph.args(launch);
  const Arg& size = args[args.size() - 2];
  return size.kind() == ArgKind::kInt ? size.as_int() : 0;
}

std::string_view ReduceOpOf(const Graph& graph, NodeId launch) {
  const auto kind = CollectiveOf(graph, launch);
  if (kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kAllReduce) return {};
  const Arg& op = graph.args(launch)[1];
  return op.kind() == ArgKind::kString ? graph.module().str(op.str()) : std::string_view();
}

NodeId OnlyWaitOf(const Graph& graph, NodeId launch) {
  const NodeId user = OnlyUserOf(graph, launch);
  return user.valid() && IsWait(graph, user) ? user : NodeId{};
}

std::vector<NodeId> UsersOf(const Graph& graph, NodeId node) {
  std::vector<NodeId> users;
  std::set<NodeId> seen;
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    for (const Use use : graph.uses(graph.result(node, i)))
      if (seen.insert(use.user).second) users.push_back(use.user);
  return users;
}

NodeId OnlyUserOf(const Graph& graph, NodeId node) {
  NodeId only;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    for (const Use use : graph.uses(graph.result(node, i))) {
      if (only.valid() && only != use.user) return {};
      only = use.user;
    }
  }
  return only;
}

std::vector<NodeId> InputsOf(const Graph& graph, NodeId node) {
  std::vector<NodeId> inputs;
  std::set<NodeId> seen;
  graph.ForEachOperand(node, [&](ValueId value) {
    if (seen.insert(graph.value(value).def).second) inputs.push_back(graph.value(value).def);
  });
  return inputs;
}

namespace {

/// Whether `arg` reads one node, `only`, or none; sets `only` where it is not set.
bool ReadsOnly(const Graph& graph, const Arg& arg, NodeId& only) {
  if (arg.is_span()) {
    return std::ranges::all_of(graph.elements(arg),
                               [&](const Arg& element) { return ReadsOnly(graph, element, only); });
  }
  if (!arg.is_value()) return true;
  const NodeId def = graph.value(arg.value()).def;
  if (!only.valid()) only = def;
  return def == only;
}

}  // namespace

NodeId OnlyInputOf(const Graph& graph, NodeId node) {
  NodeId only;
  // Stops at the second input: a graph's output has many, and is a user of many nodes.
  bool is_only = std::ranges::all_of(graph.args(node),
                                     [&](const Arg& arg) { return ReadsOnly(graph, arg, only); });
  for (size_t i = 0; is_only && i < graph.node(node).num_kwargs; ++i)
    is_only = ReadsOnly(graph, graph.kwarg(node, i).value, only);
  return is_only ? only : NodeId{};
}

}  // namespace strata
