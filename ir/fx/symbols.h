#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace strata::fx {

/// Statements `s0 = x.shape[1]`, so that Python knows the symbols in the arguments of a graph: each
/// symbol is bound where the first value is that has it as a size and has users.
class SymbolBindings {
 public:
  explicit SymbolBindings(const Graph& graph);

  /// The symbols that are to be bound behind `value`, each with the size that it is.
  std::vector<std::pair<std::string_view, size_t>> Of(ValueId value) const;

  /// Symbols in arguments that neither are the size of a value nor the name of a node, in order of
  /// first use.
  const std::vector<std::string_view>& unbound() const { return unbound_; }

 private:
  struct Binding {
    std::string_view symbol;
    ValueId value;
    size_t size = 0;
  };

  std::vector<Binding> bindings_;
  std::vector<std::string_view> unbound_;
};

}  // namespace strata::fx
