#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "prove/sizes/size_constraints.h"
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
  SharedNumbers shared = {};
  Kinds kinds = Kinds::kByPlace;
  double max_products = 1e9;  ///< of one pair of graphs, which takes some seconds
};

/// Two graphs with small sizes in the place of large ones, the same in both.
struct ReducedPair {
  std::unique_ptr<Module> before_module, after_module;
  const Graph* before = nullptr;
  const Graph* after = nullptr;
  std::set<std::pair<int64_t, int64_t>> sizes;  ///< old and new, those that differ
  bool has_numbers = false;  ///< in arithmetic, equal to a size that was replaced
  SizePairs equal;           ///< different sizes that are equal now
  double products = 0;       ///< that the evaluation of both takes, on all ranks
};

/// Replaces sizes in types and in arguments that are sizes. Products (views, shards, gathers) and
/// sums (concatenations, splits, slices) of sizes stay so, and different sizes stay different, but
/// those of `shared`. A size that an argument of unknown meaning is equal to stays as it is.
/// Errors: symbolic sizes; no small sizes are legal.
Result<ReducedPair> Reduce(const Graph& before, const Graph& after, const ReduceOptions& options);

/// One pair of graphs to prove; or two, where one would take more than `max_products` and two take
/// less: then different sizes may be equal in one of them, and are different in the other. Where
/// that takes more, too, sizes of one number are of as many kinds as there are. Errors: as of
/// Reduce.
Result<std::vector<ReducedPair>> ReduceOnceOrTwice(const Graph& before, const Graph& after,
                                                   const ReduceOptions& options);

}  // namespace strata::prove
