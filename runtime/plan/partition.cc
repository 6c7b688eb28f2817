#include "runtime/plan/partition.h"

#include <cstddef>
#include <span>
#include <vector>

#include "ir/module.h"

namespace strata {

std::optional<SizePartition> PartitionOf(const Graph& graph, NodeId node, const SymbolSizes& sizes,
                                         const std::function<SlotId(ValueId)>& slot_of) {
  const Module& module = graph.module();
  const std::span<const Arg> args = graph.args(node);
  if (graph.op(node) != "aten.split_with_sizes.default" || args.size() < 2 || !args[0].is_value() ||
      !args[1].is_span()) {
    return std::nullopt;
  }
  const TypeId id = graph.value(args[0].value()).type;
  if (!id.valid() || module.types()[id].kind != TypeKind::kTensor) return std::nullopt;
  const std::vector<DimId>& dims = module.types()[id].sizes;
  int64_t dim = args.size() > 2 && args[2].kind() == ArgKind::kInt ? args[2].as_int() : 0;
  if (dim < 0) dim += static_cast<int64_t>(dims.size());
  if (dim < 0 || dim >= static_cast<int64_t>(dims.size())) return std::nullopt;
  const auto total = NumberOf(module, dims[static_cast<size_t>(dim)], sizes);
  if (!total) return std::nullopt;
  SizePartition partition{.slots = {}, .total = *total};
  for (const Arg& part : graph.elements(args[1])) {
    if (part.is_value()) partition.slots.push_back(slot_of(part.value()));
    if (part.kind() == ArgKind::kInt) partition.total -= part.as_int();
  }
  if (partition.slots.empty()) return std::nullopt;
  return partition;
}

}  // namespace strata
