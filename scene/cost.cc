#include "scene/cost.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

using Shape = std::vector<double>;

/// Sizes of a value under the symbols' hints; none when one is not known.
std::optional<Shape> ShapeOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return std::nullopt;
  const Type& type = graph.module().types()[id];
  if (type.kind != TypeKind::kTensor) return std::nullopt;
  Shape shape;
  for (DimId size : type.sizes) {
    const std::optional<int64_t> hint = graph.module().dims().Hint(size);
    if (!hint) return std::nullopt;
    shape.push_back(static_cast<double>(*hint));
  }
  return shape;
}

double Product(const Shape& shape, size_t begin = 0) {
  double product = 1;
  for (size_t i = begin; i < shape.size(); ++i)
    product *= shape[i];
  return product;
}

/// Two matrices, possibly with the same batch dimensions before them.
double ProductFlops(const Shape& a, const Shape& b) {
  if (a.size() < 2 || b.size() < 2) return 0;
  return 2 * Product(a) * b.back();
}

/// Query, key and value as `[batch, heads, length, width]`.
double AttentionFlops(const std::vector<Shape>& qkv, bool backward) {
  for (const Shape& shape : qkv) {
    if (shape.size() != 4) return 0;
  }
  const Shape &q = qkv[0], &k = qkv[1], &v = qkv[2];
  const double pairs = 2 * q[0] * q[1] * q[2] * k[2];
  const double scores = pairs * q[3], weighted = pairs * v[3];
  // Backward computes the scores again; then two products as wide as keys, two as wide as values.
  return backward ? 3 * scores + 2 * weighted : scores + weighted;
}

}  // namespace

double FlopsOf(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return 0;
  const std::string_view op = graph.op(node), base = BaseName(op);
  const bool attention = base.starts_with("_scaled_dot_product") ||
                         base.starts_with("_flash_attention") ||
                         base.starts_with("_efficient_attention");
  const bool backward = base.ends_with("_backward");
  size_t first = 0, count = 2;  // operands that tell
  if (base == "addmm" || base == "baddbmm") {
    first = 1;
  } else if (attention) {
    first = backward ? 1 : 0;  // the gradient stands before query, key and value
    count = 3;
  } else if (base != "mm" && base != "bmm" && base != "convolution" && base != "conv2d" &&
             base != "linear" && base != "matmul") {
    return 0;
  }
  std::vector<Shape> shapes;
  for (const Arg& arg : graph.args(node).subspan(std::min(first, graph.args(node).size()))) {
    if (shapes.size() == count) break;
    if (!arg.is_value()) return 0;
    const std::optional<Shape> shape = ShapeOf(graph, arg.value());
    if (!shape) return 0;
    shapes.push_back(*shape);
  }
  if (shapes.size() < count) return 0;
  if (attention) return AttentionFlops(shapes, backward);
  if (base == "linear") return shapes[1].empty() ? 0 : 2 * Product(shapes[0]) * shapes[1][0];
  if (base == "convolution" || base == "conv2d") {
    const std::optional<Shape> result = ShapeOf(graph, graph.result(node));
    return result ? 2 * Product(*result) * Product(shapes[1], 1) : 0;
  }
  return ProductFlops(shapes[0], shapes[1]);
}

double FlopsOf(const Graph& graph) {
  double flops = 0;
  for (NodeId id : graph.nodes())
    flops += FlopsOf(graph, id);
  return flops;
}

}  // namespace strata
