#include "ir/fx/symbols.h"

#include <algorithm>

#include "ir/fx/fx.h"
#include "ir/module.h"

namespace strata {
namespace fx {
namespace {

void AddSymbols(const DimTable& dims, DimId dim, std::vector<std::string_view>& symbols) {
  if (dims.kind(dim) == DimKind::kSymbol &&
      std::ranges::find(symbols, dims.name(dim)) == symbols.end()) {
    symbols.push_back(dims.name(dim));
  }
  for (const DimId operand : dims.operands(dim))
    AddSymbols(dims, operand, symbols);
}

void AddSymbols(const Graph& graph, const Arg& arg, std::vector<std::string_view>& symbols) {
  if (arg.kind() == ArgKind::kDim) AddSymbols(graph.module().dims(), arg.dim(), symbols);
  if (!arg.is_span()) return;
  for (const Arg& element : graph.elements(arg))
    AddSymbols(graph, element, symbols);
}

/// Of the arguments of all nodes, in order of first use.
std::vector<std::string_view> SymbolsOf(const Graph& graph) {
  std::vector<std::string_view> symbols;
  for (const NodeId id : graph.nodes()) {
    for (const Arg& arg : graph.args(id))
      AddSymbols(graph, arg, symbols);
    for (size_t i = 0; i < graph.node(id).num_kwargs; ++i)
      AddSymbols(graph, graph.kwarg(id, i).value, symbols);
  }
  return symbols;
}

}  // namespace

SymbolBindings::SymbolBindings(const Graph& graph) : unbound_(SymbolsOf(graph)) {
  if (unbound_.empty()) return;
  const DimTable& dims = graph.module().dims();
  for (const NodeId id : graph.nodes()) {
    // What is named like a symbol is that symbol.
    std::erase(unbound_, graph.name(id));
    for (size_t i = 0; i < graph.node(id).num_results; ++i) {
      const ValueId value = graph.result(id, i);
      const TypeId type = graph.value(value).type;
      if (!type.valid() || graph.value(value).num_uses == 0) continue;
      const std::vector<DimId>& sizes = graph.module().types()[type].sizes;
      for (size_t size = 0; size < sizes.size(); ++size) {
        if (dims.kind(sizes[size]) != DimKind::kSymbol) continue;
        const std::string_view symbol = dims.name(sizes[size]);
        if (std::erase(unbound_, symbol) > 0) bindings_.push_back({symbol, value, size});
      }
    }
  }
}

std::vector<std::pair<std::string_view, size_t>> SymbolBindings::Of(ValueId value) const {
  std::vector<std::pair<std::string_view, size_t>> found;
  for (const Binding& binding : bindings_) {
    if (binding.value == value) found.emplace_back(binding.symbol, binding.size);
  }
  return found;
}

}  // namespace fx

std::vector<std::string> UnboundSymbols(const Graph& graph) {
  const fx::SymbolBindings bindings(graph);
  return {bindings.unbound().begin(), bindings.unbound().end()};
}

}  // namespace strata
