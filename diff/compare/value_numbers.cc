#include "diff/compare/value_numbers.h"

#include <optional>

#include "base/flat_map.h"
#include "diff/graph/keyed.h"
#include "diff/graph/large_arrays.h"
#include "diff/graph/symbols.h"
#include "diff/match/fetch_ahead.h"
#include "ir/module.h"

namespace strata {
namespace {

template <class IsAnyPiece>
IdVector<EntityId, uint64_t> Number(const Labels& labels, IsAnyPiece is_any_piece) {
  auto numbers = MakeLarge<IdVector<EntityId, uint64_t>>(labels.size());
  for (EntityId i : labels.ids()) {
    if (const EntityId later{i.index + kAhead}; later < labels.ids().end_id())
      FetchAhead(labels.operands(later), [&](EntityId operand) { return &numbers[operand]; });
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
  // Several nodes of both graphs may compute one value: the copies are those without a partner.
  struct Alike {
    int32_t nodes = 0;
    bool has_new = false;
  };
  FlatMap<uint64_t, Alike> groups;
  for (EntityId i : labels.ids()) {
    Alike& group = *groups.Emplace(alike[i], {}).first;
    ++group.nodes;
    group.has_new |= !matching.matched(side, i);
  }
  return Number(labels, [&](EntityId i) {
    if (!labels.piece[i] || matching.matched(side, i)) return false;
    EntityId whole = FirstOperand(labels, i);
    if (whole.valid() && listing[i].element.valid()) whole = FirstOperand(labels, whole);
    if (!whole.valid()) return true;
    const Alike& group = *groups.Find(alike[whole]);
    const bool is_copied = group.nodes > 1 && group.has_new;
    return !is_copied;
  });
}

std::map<EntityId, std::vector<EntityId>> EqualsOfMatched(
    const Matching& matching, Side side, const IdVector<EntityId, uint64_t>& numbers) {
  const Labels& labels = matching.labels(side);
  const auto unmatched = [&](EntityId i) { return !matching.matched(side, i); };
  // Only numbers of unmatched nodes are looked for: mostly few.
  size_t num_unmatched = 0;
  for (const EntityId i : labels.ids())
    num_unmatched += unmatched(i) ? 1 : 0;
  HashFilter wanted(num_unmatched);
  for (const EntityId i : labels.ids()) {
    if (unmatched(i)) wanted.Add(numbers[i]);
  }
  FlatMap<uint64_t, EntityId> first;
  for (const EntityId i : labels.ids()) {
    if (!unmatched(i) && wanted.MayHave(numbers[i])) first.Emplace(numbers[i], i);
  }
  std::map<EntityId, std::vector<EntityId>> equals;
  for (const EntityId i : labels.ids()) {
    if (!unmatched(i) || labels.kind[i] == EntityKind::kInput) continue;
    const EntityId* equal = first.Find(numbers[i]);
    if (equal != nullptr) equals[*equal].push_back(i);
  }
  return equals;
}

}  // namespace strata
