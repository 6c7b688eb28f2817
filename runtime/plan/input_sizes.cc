#include "runtime/plan/input_sizes.h"

#include <algorithm>
#include <optional>
#include <string>
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

const Type* TypeOf(const Graph& graph, NodeId placeholder) {
  const TypeId id = graph.value(graph.result(placeholder)).type;
  return id.valid() ? &graph.module().types()[id] : nullptr;
}

/// Calls `fn(node, type, index)` for each of GivenInputs that is a tensor.
template <class Fn>
void ForEachInput(const Graph& graph, Fn&& fn) {
  size_t index = 0;
  for (const NodeId node : GivenInputs(graph)) {
    const Type* type = TypeOf(graph, node);
    if (type != nullptr && type->kind == TypeKind::kTensor) fn(node, *type, index);
    ++index;
  }
}

/// Calls `fn(symbol)` for each size of an input that is a symbol or a multiple of one.
template <class Fn>
void ForEachSymbol(const Graph& graph, Fn&& fn) {
  const auto add = [&](DimId dim) {
    if (const auto multiple = AsMultiple(graph.module(), dim)) fn(*multiple->symbol);
  };
  for (const NodeId node : graph.placeholders()) {
    const Type* type = TypeOf(graph, node);
    if (type == nullptr) continue;
    if (type->kind == TypeKind::kSymInt) add(type->dim);
    if (type->kind == TypeKind::kTensor) std::ranges::for_each(type->sizes, add);
  }
}

}  // namespace

std::vector<NodeId> GivenInputs(const Graph& graph) {
  std::vector<NodeId> inputs = graph.placeholders();
  std::erase_if(inputs, [&](NodeId node) {
    const Type* type = TypeOf(graph, node);
    return type != nullptr && type->kind == TypeKind::kSymInt;
  });
  return inputs;
}

std::optional<int64_t> IntegerOf(const Graph& graph, ValueId value, const SymbolSizes& sizes) {
  const Module& module = graph.module();
  const TypeId id = graph.value(value).type;
  if (!id.valid() || module.types()[id].kind != TypeKind::kSymInt) return std::nullopt;
  const auto number = NumberOf(module, module.types()[id].dim, sizes);
  return number ? std::optional(*number) : std::nullopt;
}

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
  ForEachSymbol(graph, [&](const Symbol& symbol) {
    if (symbol.hint) sizes.emplace(graph.module().str(symbol.name), *symbol.hint);
  });
  return sizes;
}

SymbolSizes DrawSizes(const Graph& graph) {
  SymbolSizes sizes = HintsOf(graph);
  const SymbolSizes others = SampleSizes(graph.module())[0];
  ForEachSymbol(graph, [&](const Symbol& symbol) {
    const std::string name(graph.module().str(symbol.name));
    sizes.emplace(name, others.at(name));
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
