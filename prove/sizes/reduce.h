#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/result.h"
#include "ir/module.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Whether a graph is too large to be evaluated: in products, in the elements of its inputs, in
/// values of all ranks, or in ranks.
bool NeedsReduction(const Graph& graph);

/// Whether tensors that a node computed have the sizes of its type.
bool HasSizesOfType(const Graph& graph, NodeId node, std::span<const Value> results);

/// What a number in arithmetic becomes that is equal to a size: `mul(x, 4096)`.
enum class Numbers : uint8_t {
  kKeep,        ///< it stays
  kNewAsSizes,  ///< that which the other graph has, too, stays
  kAsSizes,     ///< what the size becomes: the mean over 4096 elements divides by the new size
};

/// Which sizes are one.
enum class SizeEquality : uint8_t {
  kByDimension,  ///< those that the operators tie to each other; axes of a mesh are sizes, too
  kByNumber,     ///< all that are the same number; meshes stay
};

struct ReduceOptions {
  SizeEquality equality = SizeEquality::kByDimension;
  Numbers numbers = Numbers::kKeep;
  bool stable_ids = false;  ///< nodes of the two graphs are paired by StableId
};

/// Two graphs with small sizes in the place of large ones, the same in both.
struct ReducedPair {
  std::unique_ptr<Module> before_module, after_module;
  const Graph* before = nullptr;
  const Graph* after = nullptr;
  std::set<std::pair<int64_t, int64_t>> sizes;  ///< old and new, those that differ
  bool has_numbers = false;  ///< in arithmetic, equal to a size that was replaced
};

/// Replaces sizes in types and in arguments that are sizes. Products (views, shards, gathers) and
/// sums (concatenations, splits, slices) of sizes stay so, and different sizes stay different. A
/// size that an argument of unknown meaning is equal to stays as it is. Errors: symbolic sizes; no
/// small sizes are legal.
Result<ReducedPair> Reduce(const Graph& before, const Graph& after, const ReduceOptions& options);

}  // namespace strata::prove
