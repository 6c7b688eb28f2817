#include "diff/pattern/hunk_items.h"

#include <algorithm>

namespace strata {
namespace {

bool ReadsUnmatched(const Matching& matching, Side side, EntityId id) {
  return std::ranges::any_of(matching.labels(side).operands(id), [&](const Labels::Edge& operand) {
    return !matching.matched(side, operand.entity);
  });
}

/// Its own fields are operands that were or are unmatched nodes. The output reads from anywhere.
bool IsConsumer(const Matching& matching, const Pair& pair) {
  if (!pair.status.changed) return false;
  const bool is_output = matching.labels(kBefore).kind[pair.before] == EntityKind::kOutput;
  for (const FieldDiff& field : pair.fields) {
    if (field.derived || field.path.starts_with("meta.")) continue;
    if (!field.path.starts_with("operands")) return false;
  }
  return is_output || ReadsUnmatched(matching, kBefore, pair.before) ||
         ReadsUnmatched(matching, kAfter, pair.after);
}

}  // namespace

HunkItems::HunkItems(const Matching& matching, const GraphDiff& diff)
    : item_of_{IdVector<EntityId, int32_t>(diff.before.ids().size(), -1),
               IdVector<EntityId, int32_t>(diff.after.ids().size(), -1)} {
  for (PairId id : IdsOf(diff.pairs)) {
    const Pair& pair = diff.pairs[id];
    if (!pair.status.changed && !pair.status.moved) continue;
    Add({id, pair.before, pair.after, IsConsumer(matching, pair)});
  }
  for (EntityId id : diff.deleted)
    Add({{}, id, {}, false});
  for (EntityId id : diff.inserted)
    Add({{}, {}, id, false});
}

void HunkItems::Add(HunkItem item) {
  const auto index = static_cast<int32_t>(items_.size());
  if (item.before.valid()) item_of_[kBefore][item.before] = index;
  if (item.after.valid()) item_of_[kAfter][item.after] = index;
  items_.push_back(item);
}

void HunkItems::FindLayers(const HunkPlaces& places) {
  layer_of_item_.reserve(items_.size());
  for (const HunkItem& item : items_)
    layer_of_item_.push_back(places.LayerOfItem(item));
}

bool IsSharedConstant(const Matching& matching, Side side, EntityId id) {
  const Labels& labels = matching.labels(side);
  const bool is_input =
      labels.kind[id] == EntityKind::kInput || labels.kind[id] == EntityKind::kConstant;
  return is_input && labels.users(id).size() > 1;
}

}  // namespace strata
