#include "diff/output/fold_shifts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "diff/graph/arguments.h"
#include "diff/graph/operand_places.h"
#include "diff/graph/sequence.h"

namespace strata {
namespace {

bool IsOperand(const FieldDiff& field) {
  return field.path.starts_with("operands[");
}

/// A replacement of one operand by another follows from a relation that joins the two.
bool Joined(const GraphDiff& diff, EntityId before, EntityId after) {
  return std::ranges::any_of(diff.relations, [&](const Relation& relation) {
    return relation.kind != RelationKind::kClone &&
           std::ranges::find(relation.before, before) != relation.before.end() &&
           std::ranges::find(relation.after, after) != relation.after.end();
  });
}

/// The operands of both sides, and which of them are the same node at the same place of the order.
class OperandLists {
 public:
  OperandLists(const GraphDiff& diff, const Pair& pair) : diff_(diff) {
    const std::vector<Leaf> leaves_before = LeavesOf(diff.before, pair.before);
    const std::vector<Leaf> leaves_after = LeavesOf(diff.after, pair.after);
    const OperandPlaces places(leaves_before, leaves_after, [&](size_t side, EntityId id) {
      const PairId found = (side == 0 ? diff.pair_of_before : diff.pair_of_after)[id];
      if (!found.valid()) return EntityId{};
      return side == 0 ? diff.pairs[found].after : diff.pairs[found].before;
    });
    before_ = OperandsOutsideOfText(0, leaves_before, places);
    after_ = OperandsOutsideOfText(1, leaves_after, places);
    // Both as names of the after side. What has no partner equals nothing.
    std::vector<uint64_t> a, b;
    for (const Operand& operand : before_)
      a.push_back(static_cast<uint64_t>(ImageOf(operand.id)));
    for (const Operand& operand : after_)
      b.push_back(static_cast<uint64_t>(operand.id.index));
    common_ = CommonSubsequence(a, b);
  }

  ReadableFields Align() const {
    ReadableFields result;
    int32_t i = 0, j = 0;
    for (const auto& [next_i, next_j] : common_) {
      Gap(i, next_i, j, next_j, result.fields);
      result.shifted +=
          before_[static_cast<size_t>(next_i)].index != after_[static_cast<size_t>(next_j)].index;
      i = next_i + 1, j = next_j + 1;
    }
    Gap(i, static_cast<int32_t>(before_.size()), j, static_cast<int32_t>(after_.size()),
        result.fields);
    return result;
  }

 private:
  struct Operand {
    EntityId id;
    size_t index;  ///< among all operands of the node
  };

  static std::vector<Operand> OperandsOutsideOfText(size_t side, const std::vector<Leaf>& leaves,
                                                    const OperandPlaces& places) {
    std::vector<Operand> operands;
    size_t index = 0;
    for (const Leaf& leaf : leaves) {
      if (!leaf.operand.valid()) continue;
      if (!places.InText(side, index)) operands.push_back({leaf.operand, index});
      ++index;
    }
    return operands;
  }

  /// The after node that is this before node; -1: none.
  int32_t ImageOf(EntityId before) const {
    if (!before.valid()) return -1;
    const PairId pair = diff_.pair_of_before[before];
    return !pair.valid() ? -1 : diff_.pairs[pair].after.index;
  }

  /// What stands between two common operands: one for one, then what is left of the longer side.
  void Gap(int32_t i, int32_t end_i, int32_t j, int32_t end_j, FieldDiffs& fields) const {
    for (; i < end_i || j < end_j; ++i, ++j) {
      const Operand* before = i < end_i ? &before_[static_cast<size_t>(i)] : nullptr;
      const Operand* after = j < end_j ? &after_[static_cast<size_t>(j)] : nullptr;
      const std::string path =
          before != nullptr && after != nullptr && before->index != after->index
              ? fmt::format("operands[{}→{}]", before->index, after->index)
              : fmt::format("operands[{}]", (before ? before : after)->index);
      std::optional<std::string> old_name, new_name;
      if (before != nullptr) old_name = diff_.before.name(before->id);
      if (after != nullptr) new_name = diff_.after.name(after->id);
      const bool derived =
          before != nullptr && after != nullptr && Joined(diff_, before->id, after->id);
      fields.Add({path, old_name, new_name, derived});
    }
  }

  const GraphDiff& diff_;
  std::vector<Operand> before_, after_;
  std::vector<std::pair<int32_t, int32_t>> common_;
};

}  // namespace

ReadableFields FoldShifts(const GraphDiff& diff, const Pair& pair) {
  const auto operands = static_cast<size_t>(std::ranges::count_if(pair.fields, IsOperand));
  if (operands < 2) return {pair.fields};
  const OperandLists lists(diff, pair);
  ReadableFields aligned = lists.Align();
  if (aligned.shifted == 0 || aligned.fields.size() * 2 > operands) return {pair.fields};
  // The operands stand where they stood among the other fields.
  ReadableFields result{{}, aligned.shifted};
  bool are_added = false;
  for (const FieldDiff& field : pair.fields) {
    if (!IsOperand(field)) {
      result.fields.Add(field);
    } else if (!std::exchange(are_added, true)) {
      for (const FieldDiff& operand : aligned.fields)
        result.fields.Add(operand);
    }
  }
  return result;
}

std::string ShiftText(int32_t shifted) {
  return fmt::format("{} operand{} that only stand{} at another place", shifted,
                     shifted == 1 ? "" : "s", shifted == 1 ? "s" : "");
}

}  // namespace strata
