#include "diff/ranks/rank_texts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata {
namespace {

std::string RanksText(const std::vector<int32_t>& ranks) {
  constexpr size_t kShown = 4;
  if (ranks.size() > kShown) return fmt::format("{} ranks", ranks.size());
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace

std::string ValuesText(const std::vector<int32_t>& ranks, const std::vector<int64_t>& values) {
  std::map<int64_t, std::vector<int32_t>> by_value;
  for (size_t k = 0; k < ranks.size(); ++k)
    by_value[values[k]].push_back(ranks[k]);
  std::vector<std::pair<int64_t, std::vector<int32_t>>> sorted(by_value.begin(), by_value.end());
  std::ranges::stable_sort(sorted, {}, [](const auto& entry) { return entry.second.size(); });
  constexpr size_t kShown = 3;
  std::vector<std::string> parts;
  for (const auto& [value, owners] : sorted) {
    if (parts.size() == kShown) break;
    parts.push_back(fmt::format("{} on {}", value, RanksText(owners)));
  }
  if (sorted.size() > kShown) parts.push_back("…");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ExceptionsText(const std::vector<int32_t>& ranks, const std::vector<int64_t>& values,
                           const RankRule& rule) {
  std::vector<int32_t> odd_ranks;
  std::vector<int64_t> odd_values;
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (rule.follows[k]) continue;
    odd_ranks.push_back(ranks[k]);
    odd_values.push_back(values[k]);
  }
  return fmt::format("{}, {}", ValuesText(odd_ranks, odd_values), rule.text);
}

std::string RuleText(const std::vector<int32_t>& ranks, const std::vector<int64_t>& values) {
  const std::optional<RankRule> rule = FindRankRule(ranks, values);
  return rule && rule->exceptions == 0 ? rule->text : "another one on each rank";
}

}  // namespace strata
