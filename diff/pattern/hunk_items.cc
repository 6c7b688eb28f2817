#include "diff/pattern/hunk_items.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "diff/graph/large_arrays.h"

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

HunkItems::HunkItems(const Matching& matching, const GraphDiff& diff) {
  AssignLarge(item_of_[kBefore], diff.before.ids().size(), -1);
  AssignLarge(item_of_[kAfter], diff.after.ids().size(), -1);
  const auto differs = [](const Pair& pair) { return pair.status.changed || pair.status.moved; };
  ReserveLarge(items_, diff.deleted.size() + diff.inserted.size() +
                           static_cast<size_t>(std::ranges::count_if(diff.pairs, differs)));
  for (PairId id : IdsOf(diff.pairs)) {
    const Pair& pair = diff.pairs[id];
    if (!differs(pair)) continue;
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
  std::unordered_map<std::string_view, int32_t> known{{"", 0}};
  for (const HunkItem& item : items_) {
    const std::string_view layer = places.LayerOfItem(item);
    const auto next = static_cast<int32_t>(layers_.size());
    const auto [found, is_new] = known.try_emplace(layer, next);
    if (is_new) layers_.push_back(layer);
    layer_of_item_.push_back(found->second);
  }
  if (layers_.size() == 1) layer_of_item_ = std::vector<int32_t>();
}

HunkMembers::HunkMembers(const std::vector<HunkId>& hunk_of_item, size_t num_hunks)
    : begin_(num_hunks + 1, 0), members_(hunk_of_item.size()) {
  for (const HunkId hunk : hunk_of_item)
    ++begin_[static_cast<size_t>(hunk.index) + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (size_t item = 0; item < hunk_of_item.size(); ++item)
    members_[next[static_cast<size_t>(hunk_of_item[item].index)]++] = static_cast<int32_t>(item);
}

void HunkMembers::Permute(const std::vector<HunkId>& order) {
  std::vector<uint32_t> begin{0};
  std::vector<int32_t> members;
  begin.reserve(begin_.size());
  members.reserve(members_.size());
  for (const HunkId hunk : order) {
    const std::span<const int32_t> row = (*this)[hunk];
    members.insert(members.end(), row.begin(), row.end());
    begin.push_back(static_cast<uint32_t>(members.size()));
  }
  begin_ = std::move(begin);
  members_ = std::move(members);
}

bool IsSharedConstant(const Matching& matching, Side side, EntityId id) {
  const Labels& labels = matching.labels(side);
  const bool is_input =
      labels.kind[id] == EntityKind::kInput || labels.kind[id] == EntityKind::kConstant;
  return is_input && labels.users(id).size() > 1;
}

}  // namespace strata
