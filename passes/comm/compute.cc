#include "passes/comm/compute.h"

#include <algorithm>
#include <string_view>

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

}  // namespace

bool IsCompute(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall &&
         std::ranges::binary_search(kComputeOps, BaseName(graph.op(node)));
}

}  // namespace strata
