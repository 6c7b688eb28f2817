#pragma once
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/symbol_sizes.h"

namespace strata::prove {

/// Graphs whose symbolic sizes all have numbers. A symbol of a log has no hint, so it gets a number
/// here, the same in all graphs.
class GraphsWithSizes {
 public:
  /// `attempt`: below kNumAttempts; each chooses other numbers. REQUIRES: the graphs outlive this.
  GraphsWithSizes(std::span<const Graph* const> graphs, size_t attempt);

  static constexpr size_t kNumAttempts = 2;

  const Graph& operator[](size_t i) const { return *graphs_[i]; }
  /// What was chosen; empty: all symbols have hints, and the graphs are those given.
  const SymbolSizes& chosen() const { return chosen_; }

 private:
  SymbolSizes chosen_;
  std::vector<std::unique_ptr<Module>> copies_;
  std::vector<const Graph*> graphs_;
};

}  // namespace strata::prove
