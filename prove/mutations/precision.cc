#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

bool HasDType(const Graph& graph, ValueId value, DType dtype) {
  const TypeId type = value.valid() ? graph.value(value).type : TypeId{};
  return type.valid() && graph.module().types()[type].dtype == dtype;
}

TypeId TypeWith(Module& module, TypeId type, DType dtype) {
  Type other = module.types()[type];
  other.dtype = dtype;
  return module.types().Intern(other);
}

/// A cast at the cursor.
ValueId Cast(Rewriter& rewriter, ValueId value, DType dtype, NodeId from) {
  Graph& graph = rewriter.graph();
  const ValueId cast = CreateLike(rewriter, "prims.convert_element_type.default",
                                  {Arg(value), Arg::DType(dtype)}, value, from);
  rewriter.SetType(cast, TypeWith(graph.module(), graph.value(value).type, dtype));
  return cast;
}

/// Ranks sum in a narrower type: what they send is rounded, and their sum.
bool ReduceNarrow(Graph& graph, NodeId node) {
  const NodeId wait = IsReduction(graph, node) ? OnlyWaitOf(graph, node) : NodeId{};
  const ValueId sent = OperandAt(graph, node, 0);
  if (!wait.valid() || !HasDType(graph, sent, DType::kF32)) return false;
  const ValueId result = graph.result(node), done = graph.result(wait);
  const std::vector<Use> uses = UsesOf(graph, done);
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  SetArg(rewriter, node, 0, Arg(Cast(rewriter, sent, DType::kBF16, node)));
  for (const ValueId value : {result, done})
    rewriter.SetType(value, TypeWith(graph.module(), graph.value(value).type, DType::kBF16));
  rewriter.SetCursorAfter(wait);
  const ValueId wide = Cast(rewriter, done, DType::kF32, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, wide);
  return true;
}

/// Rounded before a sum instead of after it.
bool CastBeforeSum(Graph& graph, NodeId node) {
  const std::string_view base = BaseName(graph.op(node));
  const ValueId summand = OperandAt(graph, node, 0);
  if ((base != "sum" && base != "mean") || !HasDType(graph, summand, DType::kF32)) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const ValueId narrow = Cast(rewriter, summand, DType::kBF16, node);
  SetArg(rewriter, node, 0, Arg(Cast(rewriter, narrow, DType::kF32, node)));
  return true;
}

// To add one: a function above and a line here.
constexpr Mutation kPrecisionMutations[] = {
    {"reduce-narrow", "ranks sum in bf16 instead of f32", ReduceNarrow, {BugKind::kPrecision}},
    {"cast-before-sum", "summands are rounded to bf16", CastBeforeSum, {BugKind::kPrecision}},
};

}  // namespace

std::span<const Mutation> PrecisionMutations() {
  return kPrecisionMutations;
}

}  // namespace strata::prove
