#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "base/result.h"
#include "ir/module.h"

namespace strata::prove {

/// Whether a graph is too large to be evaluated: in products or in the elements of its inputs.
bool NeedsReduction(const Graph& graph);

/// What a number in arithmetic becomes that is equal to a size: `mul(x, 4096)`.
enum class Numbers : uint8_t {
  kKeep,     ///< it stays
  kAsSizes,  ///< what the size becomes: the mean over 4096 elements divides by the new size
};

/// Two graphs with small sizes in the place of large ones, the same in both.
struct ReducedPair {
  std::unique_ptr<Module> before_module, after_module;
  const Graph* before = nullptr;
  const Graph* after = nullptr;
  std::map<int64_t, int64_t> sizes;  ///< new by old, those that differ
  bool has_numbers = false;          ///< in arithmetic, equal to a size that was replaced
};

/// Replaces sizes in types and in arguments that are sizes. Products (views, shards, gathers) and
/// sums (concatenations, splits, slices) of sizes stay so, equal sizes stay equal and different
/// ones different. A size that an argument of unknown meaning is equal to stays as it is. Errors:
/// symbolic sizes; no small sizes are legal; a size of `before` is not what its type says then.
Result<ReducedPair> Reduce(const Graph& before, const Graph& after, Numbers numbers);

}  // namespace strata::prove
