#include <algorithm>

#include "diff/stages.h"

namespace strata {
namespace {

/// Fewer groups of equal nodes on one side prove no common subexpression elimination.
constexpr size_t kMinMerges = 3, kMergeRatio = 8;

using Group = std::vector<int32_t>;

/// Nodes of a scope that compute the same value: equal operators over equal values.
std::vector<Group> EqualNodes(const Matching& matching, Side side, const ScopePair& scope) {
  const Labels& labels = matching.labels(side);
  const int32_t begin = scope.begin[side], end = scope.end[side];
  const auto at = [&](int32_t i) { return static_cast<size_t>(i - begin); };
  std::vector<uint64_t> numbers(at(end));
  std::vector<Keyed> keyed;
  for (int32_t i = begin; i < end; ++i) {
    const auto index = static_cast<size_t>(i);
    uint64_t number = labels.type[index];
    if (labels.kind[index] == EntityKind::kInput) number = Mix(number, index);
    for (const Labels::Edge& operand : labels.operands(i)) {
      const bool inside = operand.entity >= begin && operand.entity < end;
      number = Mix(number, inside ? numbers[at(operand.entity)] : 0);
    }
    numbers[at(i)] = number;
    // What reads nothing is a constant or a random number, and is not merged.
    if (labels.kind[index] == EntityKind::kCompute && !labels.operands(i).empty()) {
      keyed.push_back({number, i});
    }
  }
  std::ranges::sort(keyed, [](const Keyed& a, const Keyed& b) {
    return a.key != b.key ? a.key < b.key : a.entity < b.entity;
  });
  std::vector<Group> groups;
  for (size_t i = 0, j = 0; i < keyed.size(); i = j) {
    for (j = i + 1; j < keyed.size() && keyed[j].key == keyed[i].key;)
      ++j;
    if (j - i < 2) continue;
    Group group;
    for (size_t k = i; k < j; ++k)
      group.push_back(keyed[k].entity);
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Whether users of the group's unmatched nodes read the partner of the matched one now.
struct Evidence {
  bool confirmed = false, contradicted = false;
};

Evidence LookAtUsers(const Matching& matching, Side side, const Group& group, int32_t partner) {
  Evidence evidence;
  const Labels& others = matching.labels(1 - side);
  for (int32_t member : group) {
    if (matching.matched(side, member)) continue;
    for (const Labels::Edge& user : matching.labels(side).users(member)) {
      const int32_t image = matching.partner(side, user.entity);
      if (image < 0 || others.kind[static_cast<size_t>(image)] == EntityKind::kOutput) continue;
      const auto operands = others.operands(image);
      const auto slot = static_cast<size_t>(user.slot);
      const bool reads = slot < operands.size() && operands[slot].entity == partner;
      (reads ? evidence.confirmed : evidence.contradicted) = true;
    }
  }
  return evidence;
}

}  // namespace

void SettleEquals(Matching& matching, const ScopePair& scope) {
  const std::array<std::vector<Group>, 2> groups{EqualNodes(matching, kBefore, scope),
                                                 EqualNodes(matching, kAfter, scope)};
  for (Side side : {kBefore, kAfter}) {
    // Where hardly any equal nodes are left, they were merged, also where no user tells.
    const bool all_merged = groups[side].size() >= kMinMerges &&
                            groups[1 - side].size() * kMergeRatio <= groups[side].size();
    for (const Group& group : groups[side]) {
      const auto is_matched = [&](int32_t i) { return matching.matched(side, i); };
      if (std::ranges::count_if(group, is_matched) != 1 || is_matched(group[0])) continue;
      if (matching.forbidden(side, group[0])) continue;
      const int32_t kept = *std::ranges::find_if(group, is_matched);
      const int32_t partner = matching.partner(side, kept);
      const Evidence evidence = LookAtUsers(matching, side, group, partner);
      if (evidence.contradicted || !(evidence.confirmed || all_merged)) continue;
      const bool vetoed = side == kBefore ? matching.vetoed(group[0], partner)
                                          : matching.vetoed(partner, group[0]);
      if (!vetoed) matching.PassOn(side, kept, group[0]);
    }
  }
}

}  // namespace strata
