#include "prove/sizes/chosen_sizes.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "ir/module.h"

namespace strata::prove {
namespace {

/// The first attempt takes primes, so that no size is a product of others. If operators need sizes
/// that are divisible, as views do, the second one has some that are.
int64_t NumberOfSymbol(size_t index, size_t attempt, const Symbol& symbol) {
  constexpr int64_t kPrimes[] = {5, 7, 11, 13, 17, 19, 23, 29};
  const int64_t number = attempt == 0 ? kPrimes[index % std::size(kPrimes)]
                                      : static_cast<int64_t>(8 * (index % 8 + 1));
  return std::clamp(number, symbol.min, symbol.max);
}

}  // namespace

GraphsWithSizes::GraphsWithSizes(std::span<const Graph* const> graphs, size_t attempt)
    : graphs_(graphs.begin(), graphs.end()) {
  for (const Graph* graph : graphs) {
    for (const Symbol& symbol : graph->module().dims().symbols()) {
      if (!symbol.hint && symbol.backed) chosen_.emplace(graph->module().str(symbol.name), 0);
    }
  }
  if (chosen_.empty()) return;
  for (const Graph*& graph : graphs_) {
    std::unique_ptr<Module> copy = graph->module().Clone();
    const std::vector<Symbol> symbols(copy->dims().symbols().begin(), copy->dims().symbols().end());
    for (Symbol symbol : symbols) {
      const auto found = chosen_.find(copy->str(symbol.name));
      if (symbol.hint || found == chosen_.end()) continue;
      const auto index = static_cast<size_t>(std::distance(chosen_.begin(), found));
      symbol.hint = found->second = NumberOfSymbol(index, attempt, symbol);
      copy->dims().SetSymbol(symbol);
    }
    graph = &copy->graph(graph->id());
    copies_.push_back(std::move(copy));
  }
}

}  // namespace strata::prove
