#include "diff/graph/operand_places.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

namespace strata {
namespace {

/// What one side has at a path.
struct Spot {
  bool has_literal = false;
  size_t num_operands = 0;
};
using Spots = std::unordered_map<std::string_view, Spot>;

Spots SpotsOf(std::span<const Leaf> leaves) {
  Spots spots;
  for (const Leaf& leaf : leaves) {
    Spot& spot = spots[leaf.path];
    leaf.operand.valid() ? void(++spot.num_operands) : void(spot.has_literal = true);
  }
  return spots;
}

/// How often a node reads each operand.
using Counts = std::map<EntityId, size_t>;

Counts CountsOf(std::span<const Leaf> leaves) {
  Counts counts;
  for (const Leaf& leaf : leaves) {
    if (leaf.operand.valid()) ++counts[leaf.operand];
  }
  return counts;
}

}  // namespace

OperandPlaces::OperandPlaces(std::span<const Leaf> before, std::span<const Leaf> after,
                             const Partner& partner) {
  if (AreOperands(before) && AreOperands(after)) return;
  const std::array<Spots, 2> spots = {SpotsOf(before), SpotsOf(after)};
  const auto in_text = [&](std::string_view path) {
    const auto a = spots[0].find(path), b = spots[1].find(path);
    if (a == spots[0].end() || b == spots[1].end()) return false;
    const Spot &x = a->second, &y = b->second;
    return (x.has_literal || y.has_literal) &&
           (x.has_literal != y.has_literal || x.num_operands != y.num_operands);
  };
  const std::array<Counts, 2> counts = {CountsOf(before), CountsOf(after)};
  for (size_t side : {size_t{0}, size_t{1}}) {
    const auto shifted = [&](EntityId operand) {
      const EntityId other = partner(side, operand);
      const auto found = other.valid() ? counts[1 - side].find(other) : counts[1 - side].end();
      return found != counts[1 - side].end() && found->second >= counts[side].at(operand);
    };
    for (const Leaf& leaf : side == 0 ? before : after) {
      if (leaf.operand.valid())
        in_text_[side].push_back(in_text(leaf.path) && !shifted(leaf.operand));
    }
  }
}

void OperandPlaces::ForEach(size_t num_before, size_t num_after, const Fn& fn) const {
  size_t i = 0, j = 0;
  while (true) {
    while (InText(0, i))
      ++i;
    while (InText(1, j))
      ++j;
    if (i >= num_before && j >= num_after) return;
    fn(i < num_before ? std::optional(i) : std::nullopt,
       j < num_after ? std::optional(j) : std::nullopt);
    ++i, ++j;
  }
}

}  // namespace strata
