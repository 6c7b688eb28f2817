#include "prove/evaluation/work.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata::prove {
namespace {

std::vector<double> SizesOf(const Graph& graph, ValueId value) {
  std::vector<double> sizes;
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return sizes;
  const Module& module = graph.module();
  for (const DimId size : module.types()[id].sizes)
    sizes.push_back(static_cast<double>(module.dims().Hint(size).value_or(1)));
  return sizes;
}

double Product(const std::vector<double>& sizes) {
  double product = 1;
  for (const double size : sizes)
    product *= size;
  return product;
}

/// Each element that a kernel is placed at is multiplied with one row of the kernel: those of the
/// result, or of the input of a transposed convolution.
double ProductsOfConvolution(const Graph& graph, NodeId node, bool is_backward) {
  const auto args = graph.args(node);
  const size_t input = is_backward ? 1 : 0, transposed = is_backward ? 7 : 6;
  if (args.size() <= transposed || !args[0].is_value() || !args[input].is_value() ||
      !args[input + 1].is_value())
    return 0;
  const bool is_transposed =
      args[transposed].kind() == ArgKind::kBool && args[transposed].as_bool();
  const ValueId placed = is_transposed ? args[input].value()
                         : is_backward ? args[0].value()
                                       : graph.result(node);
  const std::vector<double> weight = SizesOf(graph, args[input + 1].value());
  if (weight.empty() || weight[0] == 0) return 0;
  return Product(SizesOf(graph, placed)) * Product(weight) / weight[0] * (is_backward ? 2 : 1);
}

double ProductsOf(const Graph& graph, NodeId node) {
  const std::string_view base = BaseName(graph.op(node));
  const std::vector<ValueId> operands = graph.operands(node);
  if (base == "mm" || base == "bmm" || base == "_grouped_mm" || base == "addmm") {
    const std::vector<double> left = SizesOf(graph, operands[base == "addmm" ? 1 : 0]);
    if (left.empty()) return 0;
    // [.., m, k] · [.., k, n]: each element of the result sums k products.
    return Product(SizesOf(graph, graph.result(node))) * left.back();
  }
  if (base == "convolution" || base == "convolution_backward")
    return ProductsOfConvolution(graph, node, base != "convolution");
  const bool is_backward = base.find("attention") != std::string_view::npos &&
                           base.find("backward") != std::string_view::npos;
  if (!base.starts_with("_scaled_dot_product") || operands.size() < 3) return 0;
  // Scores of each query with each key, and the values that they weight; backward has five such.
  const std::vector<double> query = SizesOf(graph, operands[is_backward ? 1 : 0]);
  const std::vector<double> key = SizesOf(graph, operands[is_backward ? 2 : 1]);
  if (key.size() < 2) return 0;
  return Product(query) * key[key.size() - 2] * (is_backward ? 5 : 2);
}

}  // namespace

double ProductsOf(const Graph& graph) {
  double products = 0;
  for (const NodeId node : graph.nodes())
    if (graph.node(node).kind == NodeKind::kCall) products += ProductsOf(graph, node);
  return products;
}

double PeakElementsOf(const Graph& graph) {
  std::vector<double> freed(static_cast<size_t>(graph.node_bound()), 0);  // by the last reader
  IdVector<NodeId, size_t> order = ByNode<size_t>(graph);
  size_t position = 0;
  for (const NodeId node : graph.nodes())
    order[node] = position++;
  double live = 0, peak = 0;
  for (const NodeId node : graph.nodes()) {
    const bool is_input = graph.node(node).kind == NodeKind::kPlaceholder;
    const bool is_view = !is_input && TraitsOf(graph.op(node)).view;
    for (size_t i = 0; i < graph.node(node).num_results && !is_view; ++i) {
      const ValueId result = graph.result(node, i);
      const double elements = Product(SizesOf(graph, result));
      live += elements;
      if (is_input) continue;
      size_t last = order[node];
      for (const Use use : graph.uses(result))
        last = std::max(last, order[use.user]);
      freed[last] += elements;
    }
    peak = std::max(peak, live);
    live -= freed[order[node]];
  }
  return peak;
}

double InputElementsOf(const Graph& graph) {
  double elements = 0;
  for (const NodeId node : graph.placeholders())
    elements += Product(SizesOf(graph, graph.result(node)));
  return elements;
}

bool IsQuick(const Graph& graph) {
  constexpr int32_t kFewNodes = 200;
  constexpr double kFewElements = 4096, kFewProducts = 1e6;
  return graph.num_nodes() <= kFewNodes && PeakElementsOf(graph) <= kFewElements &&
         ProductsOf(graph) <= kFewProducts;
}

}  // namespace strata::prove
