#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "prove/values/call.h"

namespace strata::prove {

/// What ranks hold of whole values, by placements: one for each axis of the mesh.
class HeldValues {
 public:
  /// `module` has the names of reductions. REQUIRES: both outlive this.
  HeldValues(const Module& module, const Mesh& mesh) : module_(module), mesh_(mesh) {}

  /// The first rank that has the same part.
  int64_t FirstWithPart(const Placements& placements, int64_t rank) const;
  /// Whether the ranks divide the dimensions that they cut.
  bool IsEven(const Tensor& whole, const Placements& placements) const;
  /// What a rank should have. Elements after its part, where ranks do not divide a dimension, are
  /// undefined: they may be anything.
  Tensor Wanted(const Tensor& whole, const Placements& placements, int64_t rank) const;
  /// What rank `rank` and those that hold other summands of its value have together. `parts`: by
  /// rank.
  Result<Tensor> Together(std::span<const Tensor* const> parts, const Placements& placements,
                          int64_t rank) const;
  /// How the parts of the ranks differ from what the whole demands; none: they do not.
  std::optional<std::string> Difference(const Value& whole, std::span<const Value* const> parts,
                                        const Placements& placements) const;

 private:
  /// Whether a rank before it has the same part and holds the same, or a summand of the same sum.
  bool IsKnown(std::span<const Tensor* const> parts, const Placements& placements,
               int64_t rank) const;

  const Module& module_;
  const Mesh& mesh_;
};

}  // namespace strata::prove
