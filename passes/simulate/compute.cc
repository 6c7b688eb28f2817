#include "passes/simulate/compute.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "ir/fused_op.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

constexpr std::string_view kComputeOps[] = {
    "_cudnn_attention_forward_op",
    "_flash_attention_backward",
    "_flash_attention_forward",
    "_grouped_mm",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_mm",
    "addmm",
    "baddbmm",
    "bmm",
    "convolution",
    "convolution_backward",
    "flex_attention",
    "flex_attention_backward",
    "mm",
};
static_assert(std::ranges::is_sorted(kComputeOps));

using Sizes = std::vector<double>;

/// Of each tensor operand, in order.
std::vector<Sizes> OperandSizes(const Graph& graph, NodeId node, const ExpectedSizes& expected) {
  std::vector<Sizes> operands;
  const Module& module = graph.module();
  for (const ValueId value : graph.operands(node)) {
    const TypeId type = graph.value(value).type;
    if (!type.valid() || module.types()[type].kind != TypeKind::kTensor) continue;
    Sizes& sizes = operands.emplace_back();
    for (const DimId size : module.types()[type].sizes)
      sizes.push_back(static_cast<double>(expected.Of(size).value_or(1)));
  }
  return operands;
}

/// [batch, heads, queries, dim] with keys and values: two products forward, five backward.
double AttentionFlops(const std::vector<Sizes>& operands, bool is_backward) {
  const size_t query = is_backward ? 1 : 0;
  if (operands.size() < query + 3) return 0;
  const Sizes &q = operands[query], &k = operands[query + 1], &v = operands[query + 2];
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return 0;
  const double scores = 2 * q[0] * q[1] * q[2] * k[2];
  return scores * (is_backward ? 3 * q[3] + 2 * v[3] : q[3] + v[3]);
}

}  // namespace

double ProductFlops(const Graph& graph, NodeId node, const ExpectedSizes& expected) {
  if (!IsCompute(graph, node)) return 0;
  const std::string_view base = BaseName(graph.op(node));
  const std::vector<Sizes> operands = OperandSizes(graph, node, expected);
  if (base.find("attention") != std::string_view::npos)
    return AttentionFlops(operands, base.find("backward") != std::string_view::npos);
  const size_t first = base == "addmm" || base == "baddbmm" ? 1 : 0;
  if (operands.size() < first + 2 || operands[first].empty() || operands[first + 1].empty())
    return 0;
  // Rows and columns of the first factor, columns of the second one. A row of a grouped product is
  // in one group.
  double flops = 2 * operands[first + 1].back();
  for (const double size : operands[first])
    flops *= size;
  return flops;
}

bool IsCompute(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall &&
         std::ranges::binary_search(kComputeOps, BaseName(graph.op(node)));
}

const Graph* KernelBodyOf(const Graph& graph, NodeId node) {
  if (graph.op(node) != kFusedOp || graph.args(node).empty() || !graph.args(node)[0].is_value())
    return nullptr;
  const std::span<const Arg> of_body = graph.args(graph.value(graph.args(node)[0].value()).def);
  if (of_body.empty() || of_body[0].kind() != ArgKind::kGraph) return nullptr;
  return &graph.module().graph(of_body[0].graph());
}

}  // namespace strata
