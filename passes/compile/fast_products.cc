#include "passes/compile/fast_products.h"

#include <vector>

#include "ir/module.h"
#include "ir/rewriter.h"

namespace strata {
namespace {

bool IsFloatProduct(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (op != "aten.mm.default" && op != "aten.bmm.default") return false;
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
