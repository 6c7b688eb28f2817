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

/// The shapes of the first tensor arguments behind `first`; fewer when one is unknown.
std::vector<Shape> ShapesOf(const Graph& graph, NodeId node, size_t first, size_t count) {
  std::vector<Shape> shapes;
  for (const Arg& arg : graph.args(node).subspan(std::min(first, graph.args(node).size()))) {
    const std::optional<Shape> shape =
        arg.is_value() && shapes.size() < count ? ShapeOf(graph, arg.value()) : std::nullopt;
    if (!shape) break;
    shapes.push_back(*shape);
  }
  return shapes;
}

bool IsTrue(const Graph& graph, NodeId node, size_t index, bool otherwise) {
  const auto args = graph.args(node);
  if (index >= args.size() || args[index].kind() != ArgKind::kBool) return otherwise;
  return args[index].as_bool();
}

/// One of a list of truths; lists that are not there ask for everything.
bool IsAsked(const Graph& graph, NodeId node, size_t index, size_t place) {
  const auto args = graph.args(node);
  if (index >= args.size() || !args[index].is_span()) return true;
  const auto list = graph.elements(args[index]);
  return place >= list.size() || list[place].kind() != ArgKind::kBool || list[place].as_bool();
}

/// What a filter slides over, per image; a transposed convolution slides over its input.
double Slides(const Shape& input, const Shape& output, bool transposed) {
  return Product(transposed ? input : output, 2);
}

double ConvolutionFlops(const Graph& graph, NodeId node) {
  const std::vector<Shape> shapes = ShapesOf(graph, node, 0, 2);
  const std::optional<Shape> output = ShapeOf(graph, graph.result(node));
  if (shapes.size() < 2 || !output || shapes[0].empty()) return 0;
  const bool transposed =
      BaseName(graph.op(node)) == "convolution" && IsTrue(graph, node, 6, false);
  return 2 * shapes[0][0] * Slides(shapes[0], *output, transposed) * Product(shapes[1]);
}

/// Gradients of the input and of the weight, as far as they are asked for.
double ConvolutionBackwardFlops(const Graph& graph, NodeId node) {
  const std::vector<Shape> shapes = ShapesOf(graph, node, 0, 3);
  if (shapes.size() < 3) return 0;
  const Shape &gradient = shapes[0], &input = shapes[1], &weight = shapes[2];
  if (gradient.size() < 2 || input.size() < 2) return 0;
  const double slides = Slides(input, gradient, IsTrue(graph, node, 7, false));
  constexpr size_t kMask = 10;
  double flops = 0;
  if (IsAsked(graph, node, kMask, 0)) flops += 2 * gradient[0] * slides * Product(weight);
  if (IsAsked(graph, node, kMask, 1)) {
    flops += 2 * input[0] * slides * input[1] * gradient[1] * Product(weight, 2);
  }
  return flops;
}

}  // namespace

double FlopsOf(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return 0;
  const std::string_view base = BaseName(graph.op(node));
  if (base == "convolution" || base == "conv1d" || base == "conv2d" || base == "conv3d") {
    return ConvolutionFlops(graph, node);
  }
  if (base == "convolution_backward") return ConvolutionBackwardFlops(graph, node);
  if (base.starts_with("_scaled_dot_product") || base.starts_with("_flash_attention") ||
      base.starts_with("_efficient_attention")) {
    const bool backward = base.ends_with("_backward");
    // The gradient stands before query, key and value.
    const std::vector<Shape> qkv = ShapesOf(graph, node, backward ? 1 : 0, 3);
    return qkv.size() < 3 ? 0 : AttentionFlops(qkv, backward);
  }
  const bool adds = base == "addmm" || base == "baddbmm";
  const bool grouped = base == "_grouped_mm" || base == "_scaled_grouped_mm";
  if (!adds && !grouped && base != "mm" && base != "bmm" && base != "matmul" && base != "linear" &&
      base != "_scaled_mm") {
    return 0;
  }
  const std::vector<Shape> shapes = ShapesOf(graph, node, adds ? 1 : 0, 2);
  if (shapes.size() < 2) return 0;
  const Shape &a = shapes[0], &b = shapes[1];
  if (base == "linear") return b.empty() ? 0 : 2 * Product(a) * b[0];
  // Groups share the columns of one matrix: each column belongs to one group.
  if (grouped && a.size() == 3 && b.size() == 2) return 2 * Product(a, 1) * b[1];
  return ProductFlops(a, b);
}

double BytesMovedBy(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (graph.node(node).kind != NodeKind::kCall || TraitsOf(op).view || op == "_operator.getitem" ||
      BaseName(op) == "wait_tensor") {
    return 0;
  }
  int64_t bytes = 0;
  const auto add = [&](ValueId value) {
    const TypeId type = graph.value(value).type;
    if (type.valid()) bytes += graph.module().types().Bytes(type).value_or(0);
  };
  graph.ForEachOperand(node, add);
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    add(graph.result(node, i));
  return static_cast<double>(bytes);
}

double FlopsOf(const Graph& graph) {
  double flops = 0;
  for (NodeId id : graph.nodes())
    flops += FlopsOf(graph, id);
  return flops;
}

}  // namespace strata
