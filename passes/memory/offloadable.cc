#include "passes/memory/offloadable.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "passes/core/written_memory.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Unknown strides count as contiguous.
bool IsContiguous(const Module& module, const Type& type) {
  if (!type.has_strides) return true;
  std::optional<int64_t> expected = 1;
  for (size_t dim = type.sizes.size(); dim-- > 0;) {
    const std::optional<int64_t> size = module.dims().AsConst(type.sizes[dim]);
    const std::optional<int64_t> stride = module.dims().AsConst(type.strides[dim]);
    if (expected && stride && *stride != *expected && size != 1) return false;
    expected = expected && size ? std::optional(*expected * *size) : std::nullopt;
  }
  return true;
}

bool IsWritten(const Graph& graph, ValueId value) {
  std::vector<ValueId> open = {value};
  std::set<ValueId> seen(open.begin(), open.end());
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    for (const Use use : graph.uses(at)) {
      if (Mutates(graph, use.user)) return true;
      for (size_t i = 0; i < graph.node(use.user).num_results; ++i) {
        const ValueId result = graph.result(use.user, i);
        if (OwnerOf(graph, result) == OwnerOf(graph, value) && seen.insert(result).second)
          open.push_back(result);
      }
    }
  }
  return false;
}

/// Layers are offloaded but for the last, if there are several.
int64_t LastLayer(const Graph& graph) {
  int64_t first = kNotInLayers, last = kNotInLayers;
  for (const NodeId node : graph.nodes()) {
    const int64_t layer = LayerNumber(ModuleOf(graph, node));
    if (layer == kNotInLayers) continue;
    first = first == kNotInLayers ? layer : std::min(first, layer);
    last = std::max(last, layer);
  }
  return first == last ? kNotInLayers : last;
}

bool IsCollective(const Graph& graph, NodeId node) {
  return TraitsOf(graph.op(node)).collective || BaseName(graph.op(node)) == "wait_tensor";
}

bool IsOutput(const Graph& graph, ValueId value) {
  return std::ranges::any_of(
      graph.uses(value), [&](Use use) { return graph.node(use.user).kind == NodeKind::kOutput; });
}

}  // namespace

bool IsTransfer(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  return op == kOffloadOp || op == kReloadOp || op == kTransferWaitOp;
}

bool IsViewNode(const Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  if (n.kind != NodeKind::kCall || n.num_results == 0 || Mutates(graph, node)) return false;
  for (size_t i = 0; i < n.num_results; ++i)
    if (OwnerOf(graph, graph.result(node, i)) == graph.result(node, i)) return false;
  return true;
}

int64_t OffloadableBytes(const Graph& graph, ValueId value) {
  const Value& v = graph.value(value);
  if (!v.type.valid() || OwnerOf(graph, value) != value) return 0;
  const Type& type = graph.module().types()[v.type];
  if (type.kind != TypeKind::kTensor || !IsContiguous(graph.module(), type)) return 0;
  const int64_t bytes = graph.module().types().Bytes(v.type).value_or(kSmallestOffload);
  if (bytes < kSmallestOffload || IsOutput(graph, value) || IsWritten(graph, value)) return 0;
  return bytes;
}

IdVector<NodeId, int64_t> OffloadableBytes(const Graph& graph) {
  const int64_t last_layer = LastLayer(graph);
  IdVector<NodeId, int64_t> bytes = ByNode<int64_t>(graph);
  for (const NodeId node : graph.nodes()) {
    const int64_t layer = LayerNumber(ModuleOf(graph, node));
    if (graph.node(node).kind != NodeKind::kCall || IsBackward(graph, node) ||
        layer == kNotInLayers || layer == last_layer || IsCollective(graph, node)) {
      continue;
    }
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      bytes[node] += OffloadableBytes(graph, graph.result(node, i));
  }
  return bytes;
}

StorageReaders ReadersOfStorage(const Graph& graph, ValueId value,
                                const IdVector<NodeId, int32_t>& position) {
  StorageReaders readers;
  std::set<NodeId> seen;
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    for (const Use use : graph.uses(at)) {
      if (graph.node(use.user).kind != NodeKind::kCall || IsTransfer(graph, use.user)) continue;
      if (!seen.insert(use.user).second) continue;
      const bool is_backward = IsBackward(graph, use.user);
      (is_backward ? readers.backward : readers.forward).push_back(use.user);
      if (is_backward || !IsViewNode(graph, use.user)) continue;
      readers.views.push_back(use.user);
      for (size_t i = 0; i < graph.node(use.user).num_results; ++i)
        open.push_back(graph.result(use.user, i));
    }
  }
  const auto by_position = [&](NodeId node) { return position[node]; };
  for (std::vector<NodeId>* nodes : {&readers.views, &readers.forward, &readers.backward})
    std::ranges::sort(*nodes, {}, by_position);
  return readers;
}

}  // namespace strata
