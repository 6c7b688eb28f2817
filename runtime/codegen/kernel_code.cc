#include "runtime/codegen/kernel_code.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "ir/fused_op.h"
#include "ir/module.h"
#include "ir/symbol_sizes.h"
#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/pointwise.h"
#include "passes/flex/flex_node.h"
#include "runtime/codegen/cpp_source.h"
#include "runtime/codegen/flex_source.h"
#include "runtime/plan/plan.h"

namespace strata {
namespace {

bool HasFlexCode(std::string_view op) {
  return IsFlexOp(op) || op == kBlockMaskOp;
}

std::string_view FlexFunctionName(std::string_view op) {
  if (op == kBlockMaskOp) return "create_block_mask";
  return op.substr(op.rfind('.') + 1);
}

}  // namespace

const std::string& KernelCode::Of(const Graph& graph, NodeId call) {
  const auto [known, is_new] = of_call_.try_emplace(std::pair(&graph, call));
  if (is_new) known->second = Make(graph, call);
  return known->second;
}

std::string KernelCode::Make(const Graph& graph, NodeId call) {
  if (graph.node(call).kind != NodeKind::kCall) return "";
  if (const std::optional<GraphId> region = RegionBodyOf(graph, call))
    return OfRegion(graph.module().graph(*region));
  const std::string_view op = graph.op(call);
  if (op == kFusedOp && graph.node(call).num_args > 0) {
    const std::optional<GraphId> body = BodyNamedBy(graph, graph.args(call)[0]);
    const bool is_exact = graph.node(call).num_kwargs == 0;
    return body ? OfBody(graph.module().graph(*body), is_exact) : "";
  }
  if (!HasFlexCode(op)) return "";
  if (has_flex_code_.insert(&graph).second) AddFlexCode(graph);
  const auto found = of_flex_.find(std::pair(&graph, call));
  return found == of_flex_.end() ? "" : found->second;
}

const std::string& KernelCode::OfBody(const Graph& body, bool is_exact) {
  const auto [known, is_new] = of_body_.try_emplace(std::pair(&body, is_exact));
  if (!is_new) return known->second;
  const Result<Kernel> kernel =
      MakeKernel(body, is_exact, BackedSampleSizes(body.module()).front());
  if (kernel) known->second = CppFunction(*kernel, body.name_text());
  return known->second;
}

std::string KernelCode::OfRegion(const Graph& body) {
  std::set<std::string_view> written;
  std::string code;
  for (const NodeId inside : body.nodes()) {
    const std::string& function = Of(body, inside);
    if (function.empty() || !written.insert(function).second) continue;
    if (!code.empty()) code += "\n";
    code += function;
  }
  return code;
}

void KernelCode::AddFlexCode(const Graph& graph) {
  const Result<Plan> plan =
      Lower(graph, PlanOptions::Fastest(), BackedSampleSizes(graph.module()).front());
  if (!plan) return;
  for (const PlanStep& step : plan->steps) {
    // Which kernel computes an operator of ATen depends on the processor.
    if (!step.flex_kernel.valid() || !HasFlexCode(graph.op(step.node))) continue;
    of_flex_[std::pair(&graph, step.node)] =
        FlexFunction(plan->flex_kernels[step.flex_kernel], FlexFunctionName(graph.op(step.node)));
  }
}

}  // namespace strata
