#include "diff/compare/value_numbers.h"

#include <optional>

#include "base/flat_map.h"
#include "diff/graph/keyed.h"
#include "diff/graph/symbols.h"
#include "ir/module.h"

namespace strata {
namespace {

template <class IsAnyPiece>
IdVector<EntityId, uint64_t> Number(const Labels& labels, IsAnyPiece is_any_piece) {
  IdVector<EntityId, uint64_t> numbers(labels.size());
  for (EntityId i : labels.ids()) {
    uint64_t number = is_any_piece(i) ? labels.op[i] : labels.type[i];
    if (labels.kind[i] == EntityKind::kInput) number = Mix(number, static_cast<size_t>(i.index));
    for (const Labels::Edge& operand : labels.operands(i))
      number = Mix(number, numbers[operand.entity]);
    numbers[i] = number;
  }
  return numbers;
}

EntityId FirstOperand(const Labels& labels, EntityId i) {
  const auto operands = labels.operands(i);
  return operands.empty() ? EntityId{} : operands[0].entity;
}

}  // namespace

IdVector<EntityId, uint64_t> ValueNumbers(const Labels& labels) {
  return Number(labels, [](EntityId) { return false; });
}

IdVector<EntityId, uint64_t> ValueNumbersOfCopies(const Listing& listing, const Matching& matching,
                                                  Side side) {
  const SymbolNames symbols = SymbolNames::UnbackedAsOne(listing.root().module());
  std::optional<Labels> renamed;
  if (!symbols.empty()) renamed.emplace(listing, KnownTypeFields(listing), symbols);
  const Labels& labels = renamed ? *renamed : matching.labels(side);
  const IdVector<EntityId, uint64_t> alike =
      Number(labels, [&](EntityId i) { return labels.piece[i]; });
  FlatMap<uint64_t, int32_t> counts;
  for (EntityId i : labels.ids())
    ++*counts.Emplace(alike[i], 0).first;
  return Number(labels, [&](EntityId i) {
    if (!labels.piece[i] || matching.matched(side, i)) return false;
    EntityId whole = FirstOperand(labels, i);
    if (whole.valid() && listing[i].element.valid()) whole = FirstOperand(labels, whole);
    const bool is_copied = whole.valid() && *counts.Find(alike[whole]) > 1;
    return !is_copied;
  });
}

}  // namespace strata
