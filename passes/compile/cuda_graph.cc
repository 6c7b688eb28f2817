#include "passes/compile/cuda_graph.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/compile/capture_pieces.h"

namespace strata {
namespace {

const Type* TensorType(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return nullptr;
  const Type& type = graph.module().types()[id];
  return type.kind == TypeKind::kTensor ? &type : nullptr;
}

/// Types of the tensors that a node reads and makes.
std::vector<const Type*> TensorsOf(const Graph& graph, NodeId node) {
  std::vector<const Type*> types;
  const auto add = [&](ValueId value) {
    if (const Type* type = TensorType(graph, value)) types.push_back(type);
  };
  graph.ForEachOperand(node, add);
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    add(graph.result(node, i));
  return types;
}

bool IsTrue(const Graph& graph, NodeId node, std::string_view name) {
  const Arg* arg = graph.FindKwarg(node, name);
  return arg != nullptr && arg->kind() == ArgKind::kBool && arg->as_bool();
}

/// The host's side of a copy is pinned: the value says so itself, or was made so.
bool IsPinned(const Graph& graph, ValueId value) {
  const NodeId def = graph.value(value).def;
  return graph.node(def).kind == NodeKind::kCall &&
         (IsOverloadOf(graph.op(def), "aten.pin_memory") || IsTrue(graph, def, "pin_memory"));
}

/// Whether LibTorch has one kernel for a grouped product; otherwise it copies the offsets to the
/// host and multiplies group after group. It has one for 9.0 as well, which torchtitan leaves out.
/// Source: ATen/native/cuda/GroupedBlas.cpp.
bool IsOneKernel(const std::vector<const Type*>& tensors, double capability) {
  return capability >= 10.0 && capability < 11.0 &&
         std::ranges::all_of(
             tensors,
             [](auto* type) {
               return type->dtype == DType::kBF16 ||
                      type->dtype == DType::kI32;  // I32: the offsets
             });
}

}  // namespace

std::optional<std::string> CudaGraphObstacle(const Graph& graph, NodeId node, double capability) {
  if (graph.node(node).kind != NodeKind::kCall) return std::nullopt;
  const Module& module = graph.module();
  const std::string_view op = graph.op(node);
  const auto is_on_cpu = [&](const Type* type) {
    return type->device.valid() && module.str(type->device).starts_with("cpu");
  };
  const std::vector<const Type*> tensors = TensorsOf(graph, node);

  if (IsOverloadOf(op, "aten.copy_") || IsOverloadOf(op, "aten._to_copy")) {
    const auto num_on_cpu = std::ranges::count_if(tensors, is_on_cpu);
    const bool crosses = num_on_cpu > 0 && num_on_cpu < std::ssize(tensors);
    bool is_pinned = IsTrue(graph, node, "pin_memory");
    graph.ForEachOperand(node, [&](ValueId value) {
      const Type* type = TensorType(graph, value);
      if (type != nullptr && is_on_cpu(type)) is_pinned = is_pinned || IsPinned(graph, value);
    });
    if (crosses && !is_pinned) return "copies between host and device, not pinned";
  }
  if (IsOverloadOf(op, "aten._grouped_mm") && !IsOneKernel(tensors, capability)) {
    return "a grouped product may read its offsets on the host";
  }
  if (IsOverloadOf(op, "aten._local_scalar_dense") || IsOverloadOf(op, "aten.item")) {
    return "reads a value on the host";
  }
  for (const Type* type : tensors) {
    for (const DimId dim : type->sizes) {
      if (!module.dims().AsConst(dim)) return "has a symbolic size";
    }
  }
  if (!tensors.empty() && std::ranges::all_of(tensors, is_on_cpu)) return "runs on the host";
  return std::nullopt;
}

namespace {

/// True where an attribute became another.
bool Set(Rewriter& rewriter, NodeId node, std::string_view key, std::string_view value) {
  if (rewriter.graph().attribute(node, key) == value) return false;
  rewriter.SetAttribute(node, key, value);
  return true;
}

bool Mark(Graph& graph, std::string_view obstacle, const std::set<NodeId>& outside) {
  Rewriter rewriter(graph);
  bool changed = false, has_pieces = false;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    changed = Set(rewriter, node, "cuda_graph", outside.contains(node) ? "outside" : "") || changed;
    has_pieces = has_pieces || (!outside.empty() && !outside.contains(node));
  }
  const std::string_view extent = obstacle.empty() ? "full" : has_pieces ? "pieces" : "";
  changed = Set(rewriter, graph.output(), "cuda_graph", extent) || changed;
  return Set(rewriter, graph.output(), "no_cuda_graph", obstacle) || changed;
}

}  // namespace

Result<Changed> CudaGraph::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    if (!graph.output().valid()) continue;
    std::string obstacle;
    for (const NodeId node : graph.nodes()) {
      if (auto why = CudaGraphObstacle(graph, node, options_.capability)) {
        obstacle = fmt::format("{}: {}", graph.name(node), *why);
        break;
      }
    }
    if (options_.force) obstacle.clear();
    std::set<NodeId> outside;
    if (options_.pieces && !obstacle.empty()) {
      const auto nodes = NodesOutsideOfPieces(graph, options_.capability, options_.min_nodes);
      outside.insert(nodes.begin(), nodes.end());
    }
    changed = Mark(graph, obstacle, outside) || changed;
  }
  return Changed(changed);
}

}  // namespace strata
