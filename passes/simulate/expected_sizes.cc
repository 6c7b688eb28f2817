#include "passes/simulate/expected_sizes.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"

namespace strata {

ExpectedSizes::ExpectedSizes(const Graph& graph) : graph_(&graph) {
  const Module& module = graph.module();
  bool is_any_unknown = false;
  for (const Symbol& symbol : module.dims().symbols()) {
    if (symbol.hint) {
      sizes_.emplace(module.str(symbol.name), *symbol.hint);
    } else {
      is_any_unknown = true;
    }
  }
  if (!is_any_unknown) return;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    if (IsCollective(graph, node, CollectiveKind::kAllToAll)) {
      LearnFromExchange(node);
    } else if (BaseName(graph.op(node)) == "split_with_sizes") {
      LearnFromSplit(node);
    }
  }
}

std::optional<int64_t> ExpectedSizes::Of(DimId dim) const {
  const Module& module = graph_->module();
  if (const std::optional<int64_t> hint = module.dims().Hint(dim)) return hint;
  const Result<int64_t> number = NumberOf(module, dim, sizes_);
  return number ? std::optional(*number) : std::nullopt;
}

double ExpectedSizes::BytesOf(ValueId value) const {
  return BytesOf(graph_->value(value).type);
}

double ExpectedSizes::BytesOf(TypeId id) const {
  if (!id.valid()) return 0;
  const TypeTable& types = graph_->module().types();
  if (const std::optional<int64_t> bytes = types.Bytes(id)) return static_cast<double>(*bytes);
  const Type& type = types[id];
  if (type.kind != TypeKind::kTensor) return 0;
  auto bytes = static_cast<double>(ByteSize(type.dtype));
  for (const DimId size : type.sizes) {
    const std::optional<int64_t> number = Of(size);
    if (!number || *number < 0) return 0;
    bytes *= static_cast<double>(*number);
  }
  return bytes;
}

double ExpectedSizes::CollectiveBytes(NodeId launch) const {
  if (IsCollective(*graph_, launch, CollectiveKind::kAllGather))
    return BytesOf(graph_->result(launch));
  const std::vector<ValueId> operands = graph_->operands(launch);
  return operands.empty() ? 0 : BytesOf(operands[0]);
}

/// Every rank sends as many rows as the others, so each gets what it gives. Symbols that make up
/// what it gets are equally large.
void ExpectedSizes::LearnFromExchange(NodeId launch) {
  const std::vector<ValueId> operands = graph_->operands(launch);
  if (operands.empty()) return;
  const std::optional<DimId> rows = SizeOf(graph_->result(launch), 0);
  const std::optional<DimId> given = SizeOf(operands[0], 0);
  std::optional<int64_t> left = given ? Of(*given) : std::nullopt;
  if (!rows || !left) return;
  const DimTable& dims = graph_->module().dims();
  std::vector<DimId> unknown;
  const auto take = [&](DimId part) {
    if (dims.kind(part) == DimKind::kSymbol && !Of(part)) {
      unknown.push_back(part);
    } else {
      *left -= Of(part).value_or(0);
    }
  };
  if (dims.kind(*rows) == DimKind::kAdd) {
    std::ranges::for_each(dims.operands(*rows), take);
  } else {
    take(*rows);
  }
  for (const DimId symbol : unknown)
    Learn(symbol, std::max<int64_t>(0, *left) / std::ssize(unknown));
}

void ExpectedSizes::LearnFromSplit(NodeId node) {
  const std::vector<ValueId> operands = graph_->operands(node);
  const std::span<const Arg> args = graph_->args(node);
  if (operands.empty()) return;
  const auto dim = static_cast<size_t>(args.size() > 2 && args[2].kind() == ArgKind::kInt
                                           ? std::max<int64_t>(0, args[2].as_int())
                                           : 0);
  const std::optional<DimId> whole = SizeOf(operands[0], dim);
  std::optional<int64_t> left = whole ? Of(*whole) : std::nullopt;
  if (!left) return;
  std::vector<DimId> unknown;
  for (size_t i = 0; i < graph_->node(node).num_results; ++i) {
    const ValueId part = graph_->result(node, i);
    if (const std::optional<DimId> symbol = UnknownSize(part, dim)) {
      unknown.push_back(*symbol);
    } else if (const std::optional<DimId> size = SizeOf(part, dim)) {
      *left -= Of(*size).value_or(0);
    }
  }
  for (const DimId symbol : unknown)
    Learn(symbol, std::max<int64_t>(0, *left) / std::ssize(unknown));
}

std::optional<DimId> ExpectedSizes::SizeOf(ValueId value, size_t dim) const {
  const TypeId id = graph_->value(value).type;
  if (!id.valid()) return std::nullopt;
  const Type& type = graph_->module().types()[id];
  if (type.kind != TypeKind::kTensor || type.sizes.size() <= dim) return std::nullopt;
  return type.sizes[dim];
}

std::optional<DimId> ExpectedSizes::UnknownSize(ValueId value, size_t dim) const {
  const std::optional<DimId> size = SizeOf(value, dim);
  const DimTable& dims = graph_->module().dims();
  if (!size || dims.kind(*size) != DimKind::kSymbol || sizes_.contains(dims.name(*size)))
    return std::nullopt;
  return size;
}

void ExpectedSizes::Learn(DimId symbol, int64_t size) {
  sizes_.emplace(graph_->module().dims().name(symbol), size);
}

}  // namespace strata
