#include "passes/regions/compile_standalone.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/regions/region_writer.h"

namespace strata {
namespace {

/// A tensor of constant sizes.
bool IsPlain(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return graph.value(value).num_uses == 0;
  const Module& module = graph.module();
  const Type& type = module.types()[id];
  return type.kind == TypeKind::kTensor && std::ranges::all_of(type.sizes, [&](DimId dim) {
           return module.dims().AsConst(dim).has_value();
         });
}

/// The calls of a graph that can be one node; empty: it cannot.
std::vector<NodeId> MembersOf(const Graph& graph) {
  std::vector<NodeId> members;
  for (const NodeId node : graph.nodes()) {
    const Node& n = graph.node(node);
    if (n.kind == NodeKind::kPlaceholder || n.kind == NodeKind::kGetAttr || node == graph.output())
      continue;
    bool fits =
        n.kind == NodeKind::kCall && !IsImpure(graph, node) && !TraitsOf(graph.op(node)).collective;
    for (size_t i = 0; i < n.num_results; ++i)
      fits = fits && IsPlain(graph, graph.result(node, i));
    if (!fits) return {};
    members.push_back(node);
  }
  return members;
}

}  // namespace

Result<Changed> CompileStandalone::Run(Module& module) {
  int64_t count = 0;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    const std::vector<NodeId> members = MembersOf(graph);
    if (members.empty()) continue;
    RegionWriter writer(module, graph);
    if (!writer.Replace(members, fmt::format("standalone_{}", count))) continue;
    writer.Finish();
    ++count;
  }
  return Changed(count > 0);
}

}  // namespace strata
