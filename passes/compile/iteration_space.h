#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "passes/compile/kernel.h"

namespace strata {

/// Refines shapes of equally many elements until each is a grouping of the dimensions of one:
/// `[16, 16]` and `[2, 8, 16]` are groupings of `[2, 8, 16]`.
class SpaceBuilder {
 public:
  /// `inner`: how many elements of the space one element of the shape stands for.
  void Add(std::span<const int64_t> shape, int64_t inner);
  /// The sizes, outermost first; none when the shapes cut the space at places that do not nest.
  std::optional<std::vector<int64_t>> Build();

 private:
  std::vector<int64_t> cuts_;  // elements of the space in an element of each dimension
};

/// Merges neighbouring dimensions of a kernel's space that every access walks as one.
void Coalesce(Kernel& kernel);

}  // namespace strata
