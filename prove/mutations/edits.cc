#include "prove/mutations/edits.h"

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/placement/placement.h"
#include "prove/values/call.h"

namespace strata::prove {

bool SameType(const Graph& graph, ValueId a, ValueId b) {
  const TypeId type = graph.value(a).type;
  return type.valid() && type == graph.value(b).type;
}

bool IsRealTensor(const Graph& graph, ValueId value) {
  const TypeId type = value.valid() ? graph.value(value).type : TypeId{};
  if (!type.valid() || graph.module().types()[type].kind != TypeKind::kTensor) return false;
  return DomainOf(graph.module().types()[type].dtype) == Domain::kFloat;
}

ValueId OperandAt(const Graph& graph, NodeId node, size_t position) {
  const auto args = graph.args(node);
  return position < args.size() && args[position].is_value() ? args[position].value() : ValueId{};
}

void SetArg(Rewriter& rewriter, NodeId node, size_t position, Arg arg) {
  const auto slot = static_cast<uint32_t>(position);
  rewriter.SetSlot(node, rewriter.graph().node(node).args_begin + slot, arg);
}

bool IsReduction(const Graph& graph, NodeId node) {
  return IsCollective(graph, node, CollectiveKind::kAllReduce) ||
         IsCollective(graph, node, CollectiveKind::kReduceScatter);
}

Mesh MeshOf(const Graph& graph) {
  auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
  return mesh ? *std::move(mesh) : Mesh();
}

std::vector<Use> UsesOf(const Graph& graph, ValueId value) {
  std::vector<Use> uses;
  for (const Use use : graph.uses(value))
    uses.push_back(use);
  return uses;
}

ValueId CreateLike(Rewriter& rewriter, std::string_view op, std::initializer_list<Arg> args,
                   ValueId like, NodeId from) {
  const NodeId node = rewriter.Create(op, args, {from});
  rewriter.SetType(rewriter.graph().result(node), rewriter.graph().value(like).type);
  return rewriter.graph().result(node);
}

ValueId ComputedValue(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || graph.node(node).num_results != 1) return {};
  if (CollectiveOf(graph, node) || IsWait(graph, node)) return {};
  const OpTraits traits = TraitsOf(graph.op(node));
  const ValueId value = graph.result(node);
  const bool is_own = !traits.view && !traits.mutates && !graph.value(value).alias_of.valid();
  return is_own && !graph.uses(value).empty() ? value : ValueId{};
}

}  // namespace strata::prove
