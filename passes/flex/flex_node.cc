#include "passes/flex/flex_node.h"

#include <span>

#include "ir/module.h"

namespace strata {
namespace {

class Reader {
 public:
  Reader(const Graph& graph, NodeId node) : graph_(graph), args_(graph.args(node)) {
    flex_.is_backward = graph.op(node) == kFlexBackwardOp;
  }

  Result<FlexNode> Run() {
    const size_t num_tensors = flex_.is_backward ? 7 : 3;
    const size_t num_bodies = flex_.is_backward ? 2 : 1;
    if (args_.size() < num_tensors + num_bodies + 3) return Refuse("has too few arguments");
    for (size_t i = 0; i < num_tensors; ++i)
      flex_.tensors.push_back(args_[i]);
    if (flex_.is_backward) {
      if (!flex_.tensors.back().is_none()) return Refuse("has a gradient of its logsumexp");
      flex_.tensors.pop_back();
    }
    for (const Arg& tensor : flex_.tensors)
      if (!tensor.is_value()) return Refuse("lacks a tensor");
    STRATA_TRY(flex_.score_mod, Body(args_[num_tensors]));
    if (flex_.is_backward) {
      STRATA_TRY(flex_.joint_graph, Body(args_[num_tensors + 1]));
    }
    const std::span<const Arg> rest = args_.subspan(num_tensors + num_bodies);
    STRATA_RETURN_IF_ERROR(ReadBlockMask(rest[0]));
    if (rest[1].kind() != ArgKind::kFloat && rest[1].kind() != ArgKind::kInt)
      return Refuse("has no scale");
    flex_.scale = rest[1].kind() == ArgKind::kInt ? static_cast<double>(rest[1].as_int())
                                                  : rest[1].as_float();
    if (rest.size() > 3) STRATA_RETURN_IF_ERROR(ReadBuffers(rest[3], flex_.score_buffers));
    if (rest.size() > 4) STRATA_RETURN_IF_ERROR(ReadBuffers(rest[4], flex_.mask_buffers));
    return flex_;
  }

 private:
  Result<GraphId> Body(const Arg& arg) const {
    const std::optional<GraphId> body = BodyNamedBy(graph_, arg);
    if (!body) return Refuse("must name its bodies");
    return *body;
  }

  Status ReadBlockMask(const Arg& arg) {
    constexpr size_t kLengths = 2, kSizes = 2;
    if (!arg.is_span() || arg.span_size() != kLengths + kNumBlockTensors + kSizes + 1)
      return Refuse("has a block mask of another form");
    const std::span<const Arg> parts = graph_.elements(arg);
    for (size_t i = 0; i < kLengths; ++i)
      flex_.lengths[i] = parts[i];
    for (size_t i = 0; i < kNumBlockTensors; ++i)
      flex_.block_mask[i] = parts[kLengths + i];
    for (size_t i = 0; i < kSizes; ++i)
      flex_.block_sizes[i] = parts[kLengths + kNumBlockTensors + i];
    STRATA_TRY(flex_.mask_mod, Body(parts.back()));
    return Ok();
  }

  Status ReadBuffers(const Arg& arg, std::vector<Arg>& buffers) const {
    if (!arg.is_span()) return Refuse("has buffers of another form");
    for (const Arg& element : graph_.elements(arg)) {
      if (!element.is_value()) return Refuse("has a buffer that is no tensor");
      buffers.push_back(element);
    }
    return Ok();
  }

  static Error Refuse(std::string_view why) {
    return Error(ErrorCode::kUnsupported, "flex attention {}", why);
  }

  const Graph& graph_;
  std::span<const Arg> args_;
  FlexNode flex_;
};

}  // namespace

bool IsFlexOp(std::string_view op) {
  return op == kFlexOp || op == kFlexBackwardOp;
}

std::optional<GraphId> BodyNamedBy(const Graph& graph, const Arg& arg) {
  if (arg.kind() == ArgKind::kGraph) return arg.graph();
  if (!arg.is_value()) return std::nullopt;
  const NodeId def = graph.value(arg.value()).def;
  const std::span<const Arg> args = graph.args(def);
  if (graph.node(def).kind != NodeKind::kGetAttr || args.empty() ||
      args[0].kind() != ArgKind::kGraph) {
    return std::nullopt;
  }
  return args[0].graph();
}

Result<FlexNode> ReadFlexNode(const Graph& graph, NodeId node) {
  return Reader(graph, node).Run();
}

}  // namespace strata
