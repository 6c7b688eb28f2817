#include "diff/output/fold_shifts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "diff/graph/arguments.h"
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
  OperandLists(const GraphDiff& diff, const Pair& pair)
      : diff_(diff),
        before_(OperandsOf(diff.before, pair.before)),
        after_(OperandsOf(diff.after, pair.after)) {
    // Both as names of the after side. What has no partner equals nothing.
    std::vector<uint64_t> a, b;
    for (EntityId id : before_)
      a.push_back(static_cast<uint64_t>(ImageOf(id)));
    for (EntityId id : after_)
      b.push_back(static_cast<uint64_t>(id.index));
    common_ = CommonSubsequence(a, b);
  }

  /// All operands are nodes of the listings.
  bool known() const {
    return std::ranges::all_of(before_, &EntityId::valid) &&
           std::ranges::all_of(after_, &EntityId::valid);
  }

  ReadableFields Align() const {
    ReadableFields result;
    int32_t i = 0, j = 0;
    for (const auto& [next_i, next_j] : common_) {
      Gap(i, next_i, j, next_j, result.fields);
      result.shifted += next_i != next_j;
      i = next_i + 1, j = next_j + 1;
    }
    Gap(i, static_cast<int32_t>(before_.size()), j, static_cast<int32_t>(after_.size()),
        result.fields);
    return result;
  }

 private:
  /// The after node that is this before node; -1: none.
  int32_t ImageOf(EntityId before) const {
    if (!before.valid()) return -1;
    const PairId pair = diff_.pair_of_before[before];
    return !pair.valid() ? -1 : diff_.pairs[pair].after.index;
  }

  /// What stands between two common operands: one for one, then what is left of the longer side.
  void Gap(int32_t i, int32_t end_i, int32_t j, int32_t end_j,
           std::vector<FieldDiff>& fields) const {
    for (; i < end_i || j < end_j; ++i, ++j) {
      const bool has_before = i < end_i, has_after = j < end_j;
      FieldDiff field;
      field.path = has_before && has_after && i != j
                       ? fmt::format("operands[{}→{}]", i, j)
                       : fmt::format("operands[{}]", has_before ? i : j);
      if (has_before) field.before = diff_.before.name(before_[static_cast<size_t>(i)]);
      if (has_after) field.after = diff_.after.name(after_[static_cast<size_t>(j)]);
      field.derived =
          has_before && has_after &&
          Joined(diff_, before_[static_cast<size_t>(i)], after_[static_cast<size_t>(j)]);
      fields.push_back(std::move(field));
    }
  }

  const GraphDiff& diff_;
  std::vector<EntityId> before_, after_;
  std::vector<std::pair<int32_t, int32_t>> common_;
};

}  // namespace

ReadableFields FoldShifts(const GraphDiff& diff, const Pair& pair) {
  const auto operands = static_cast<size_t>(std::ranges::count_if(pair.fields, IsOperand));
  if (operands < 2) return {pair.fields};
  const OperandLists lists(diff, pair);
  if (!lists.known()) return {pair.fields};
  ReadableFields aligned = lists.Align();
  if (aligned.shifted == 0 || aligned.fields.size() * 2 > operands) return {pair.fields};
  // The operands stand where they stood among the other fields.
  ReadableFields result{{}, aligned.shifted};
  const auto first = std::ranges::find_if(pair.fields, IsOperand);
  result.fields.assign(pair.fields.begin(), first);
  std::ranges::move(aligned.fields, std::back_inserter(result.fields));
  std::copy_if(first, pair.fields.end(), std::back_inserter(result.fields),
               [](const FieldDiff& field) { return !IsOperand(field); });
  return result;
}

std::string ShiftText(int32_t shifted) {
  return fmt::format("{} operand{} that only stand{} at another place", shifted,
                     shifted == 1 ? "" : "s", shifted == 1 ? "s" : "");
}

}  // namespace strata
