#include "passes/compile/fast_products.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "ir/module.h"
#include "ir/rewriter.h"

namespace strata {
namespace {

constexpr std::string_view kProducts[] = {
    "aten.mm.default", "aten.bmm.default", "aten._grouped_mm.default",
    "aten._scaled_dot_product_flash_attention_for_cpu.default",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"};

bool IsFloatProduct(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (std::ranges::find(kProducts, op) == std::end(kProducts)) return false;
  const TypeId id = graph.value(graph.result(node)).type;
  if (!id.valid()) return false;
  const Type& type = graph.module().types()[id];
  return type.kind == TypeKind::kTensor && type.dtype == DType::kF32 && type.device.valid() &&
         graph.module().str(type.device) == "cpu";
}

}  // namespace

bool MarkFastProducts(Graph& graph) {
  std::vector<NodeId> products;
  for (const NodeId node : graph.nodes()) {
    if (IsFloatProduct(graph, node) && !IsFastProduct(graph, node)) products.push_back(node);
  }
  Rewriter rewriter(graph);
  for (const NodeId node : products)
    rewriter.SetAttribute(node, kNumericsAttribute, kFastNumerics);
  return !products.empty();
}

bool IsFastProduct(const Graph& graph, NodeId node) {
  return graph.attribute(node, kNumericsAttribute) == kFastNumerics;
}

}  // namespace strata
