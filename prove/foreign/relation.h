#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/placement/mesh.h"
#include "prove/values/call.h"

namespace strata::prove {

/// What the ranks of one axis of a mesh hold of a tensor, in the words of DTensor.
struct Term {
  enum class Kind : uint8_t {
    kReplicate,
    kShard,  ///< of a dimension: parts of it, in the order of the ranks
    kSum,    ///< summands of it
    kMean,   ///< tensors with this mean
  };
  Kind kind = Kind::kReplicate;
  int64_t dim = 0;   ///< of kShard
  Sizes parts = {};  ///< of kShard: sizes of the parts; empty: equal ones
  bool is_partial() const { return kind == Kind::kSum || kind == Kind::kMean; }
  /// Sizes of parts follow from those of the tensor.
  friend bool operator==(const Term& a, const Term& b) {
    return a.kind == b.kind && a.dim == b.dim;
  }
};

/// One per axis of a mesh.
using Relation = std::vector<Term>;

/// "S(0) on dp, R on tp"; "" for a mesh without axes.
std::string RelationText(const Relation& relation, const Mesh& mesh);
/// "R", "S(0)", "P(sum)", "P(avg)".
std::string TermText(const Term& term);

/// Of each rank; empty: one holds no tensor.
std::vector<Sizes> SizesOnRanks(std::span<const Value> parts);

/// What a rank holds of a tensor; of a partial one the whole.
Tensor PartOf(const Tensor& whole, const Relation& relation, const Mesh& mesh, int64_t rank);

/// How the values of the ranks differ from what `relation` says of `whole`: "rank 1: 1/2 of the
/// expected value"; none: they do not.
std::optional<std::string> DifferenceOnRanks(const Value& whole, std::span<const Value> parts,
                                             const Relation& relation, const Mesh& mesh);

/// Small fractions, one for each rank, with which the values of the ranks add up to `whole`: a mean
/// of each rank's own tokens is the mean of all if ranks count by their tokens. Empty: there are
/// none, or others would do, too.
std::vector<std::string> WeightsOf(const Value& whole, std::span<const Value> parts);

/// The tensor of which the ranks hold what `relation` says; none: there is no such tensor, as where
/// ranks hold different replicas.
std::optional<Tensor> WholeOf(std::span<const Value> parts, const Relation& relation,
                              const Mesh& mesh);

}  // namespace strata::prove
