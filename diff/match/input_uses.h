#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "diff/match/matching.h"

namespace strata {

/// What reads the inputs and constants of a scope: evidence of which is which.
class InputUses {
 public:
  /// REQUIRES: both outlive the object.
  InputUses(const Matching& matching, const ScopePair& scope)
      : matching_(matching), scope_(scope) {}

  /// The users of an input, their users and so on, as paths from it. Sorted.
  using Sketch = std::vector<uint64_t>;
  std::vector<Sketch> SketchesOf(Side side, std::span<const EntityId> inputs) const;
  /// Which part of the smaller sketch is in the other, in 256ths: where users were cut off, the
  /// rest is still there.
  static int32_t Likeness(const Sketch& a, const Sketch& b);

  /// Whether some operator is among the first users of both, at the same slot, or nothing uses one
  /// of them, or both are used by operators that the other side does not have.
  bool ShareUse(EntityId before, EntityId after) const;

 private:
  void AddPaths(Side side, EntityId i, uint64_t path, int depth, Sketch& sketch) const;
  /// Whether the other side has the operators of none of these: then they are not evidence.
  bool AreForeign(Side side, std::span<const Labels::Edge> users) const;

  const Matching& matching_;
  const ScopePair& scope_;
  /// The operators of a side; made when asked for first.
  mutable std::array<std::optional<FlatMap<uint64_t, bool>>, 2> ops_;
};

}  // namespace strata
