#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "diff/graph/arguments.h"

namespace strata {

/// Which operands of two nodes stand at the same place. A literal that became an operand
/// (`[24, 12]`, then `[mul_16, 12]`) is a difference of the arguments, and shifts no operand behind
/// it. So are the operands inside a call when one side has another number of them. An operand that
/// the other node reads as often, elsewhere, was shifted, and became no literal.
class OperandPlaces {
 public:
  /// All operands: the i-th of one side stands where the i-th of the other does.
  OperandPlaces() = default;
  /// The counterpart of a node of a side (0: before); none: it has none.
  using Partner = std::function<EntityId(size_t, EntityId)>;
  /// `before`, `after`: the leaves of the two nodes.
  OperandPlaces(std::span<const Leaf> before, std::span<const Leaf> after, const Partner& partner);

  /// Whether the arguments' text shows the operand. By side (0: before) and index.
  bool InText(size_t side, size_t operand) const {
    return operand < in_text_[side].size() && in_text_[side][operand];
  }

  /// Calls `fn` with the indices of operands that stand at the same place, in order; none: the side
  /// has no operand there. Operands in the arguments' text are left out.
  using Fn = std::function<void(std::optional<size_t>, std::optional<size_t>)>;
  void ForEach(size_t num_before, size_t num_after, const Fn& fn) const;

 private:
  std::array<std::vector<bool>, 2> in_text_;  // empty: none
};

}  // namespace strata
