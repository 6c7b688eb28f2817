#include "runtime/plan/input_sizes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata {
namespace {

/// `factor` times a symbol; none for anything else.
struct Multiple {
  int64_t factor = 1;
  const Symbol* symbol = nullptr;
};

std::optional<Multiple> AsMultiple(const Module& module, DimId dim) {
  const DimTable& dims = module.dims();
  Multiple multiple;
  if (dims.kind(dim) == DimKind::kMul && dims.operands(dim).size() == 2) {
    DimId a = dims.operands(dim)[0], b = dims.operands(dim)[1];
    if (!dims.AsConst(a)) std::swap(a, b);
    multiple.factor = dims.AsConst(a).value_or(0);
    dim = b;
  }
  if (multiple.factor < 1 || dims.kind(dim) != DimKind::kSymbol) return std::nullopt;
  multiple.symbol = dims.FindSymbol(module.strings().Find(dims.name(dim)));
  return multiple.symbol != nullptr ? std::optional(multiple) : std::nullopt;
}

/// Calls `fn(type, index)` for each placeholder that is a tensor.
template <class Fn>
void ForEachInput(const Graph& graph, Fn&& fn) {
  size_t index = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kPlaceholder) continue;
    const TypeId id = graph.value(graph.result(node)).type;
    if (id.valid() && graph.module().types()[id].kind == TypeKind::kTensor) {
      fn(node, graph.module().types()[id], index);
    }
    ++index;
  }
}

}  // namespace

bool HasDynamicShapes(const Graph& graph) {
  bool has = false;
  ForEachInput(graph, [&](NodeId, const Type& type, size_t) {
    has = has || std::ranges::any_of(
                     type.sizes, [&](DimId dim) { return !graph.module().dims().AsConst(dim); });
  });
  return has;
}

SymbolSizes HintsOf(const Graph& graph) {
  SymbolSizes sizes;
  ForEachInput(graph, [&](NodeId, const Type& type, size_t) {
    for (const DimId dim : type.sizes) {
      const std::optional<Multiple> multiple = AsMultiple(graph.module(), dim);
      if (!multiple || !multiple->symbol->hint) continue;
      sizes.emplace(graph.module().str(multiple->symbol->name), *multiple->symbol->hint);
    }
  });
  return sizes;
}

Result<SymbolSizes> SizesOfInputs(const Graph& graph,
                                  std::span<const std::vector<int64_t>> shapes) {
  const Module& module = graph.module();
  SymbolSizes sizes;
  Status status = Ok();
  const auto learn = [&](NodeId node, DimId dim, int64_t size) -> Status {
    const std::optional<Multiple> multiple = AsMultiple(module, dim);
    if (!multiple) return Ok();
    const auto [factor, symbol] = *multiple;
    const std::string name(module.str(symbol->name));
    const auto refuse = [&](std::string_view why) {
      return Error("size {} does not fit: input {} of graph {}: {} is {}", size, graph.name(node),
                   graph.name_text(), module.dims().ToString(dim), why);
    };
    if (size % factor != 0) return refuse(fmt::format("a multiple of {}", factor));
    const int64_t value = size / factor;
    if (value < symbol->min || value > symbol->max) {
      const int64_t least = factor * symbol->min;
      if (symbol->max == INT64_MAX) return refuse(fmt::format("at least {}", least));
      return refuse(fmt::format("from {} to {}", least, factor * symbol->max));
    }
    const auto [known, is_new] = sizes.emplace(name, value);
    if (!is_new && known->second != value) {
      return refuse(fmt::format("{}, as inputs before it have it", factor * known->second));
    }
    return Ok();
  };
  ForEachInput(graph, [&](NodeId node, const Type& type, size_t index) {
    if (!status || index >= shapes.size() || shapes[index].size() != type.sizes.size()) return;
    for (size_t i = 0; i < type.sizes.size() && status; ++i)
      status = learn(node, type.sizes[i], shapes[index][i]);
  });
  STRATA_RETURN_IF_ERROR(status);
  return sizes;
}

}  // namespace strata
