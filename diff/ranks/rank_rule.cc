#include "diff/ranks/rank_rule.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>

namespace strata {
namespace {

/// Coordinates of ranks along an axis of a mesh, in words.
std::string AxisText(int32_t world, int32_t stride, int32_t size) {
  if (stride == 1 && size == world) return "rank";
  if (stride == 1) return fmt::format("(rank % {})", size);
  if (stride * size == world) return fmt::format("(rank / {})", stride);
  return fmt::format("(rank / {} % {})", stride, size);
}

/// The line over the coordinates of an axis on which most values are.
std::optional<RankRule> FitAxis(std::span<const int32_t> ranks, std::span<const int64_t> values,
                                int32_t world, int32_t stride, int32_t size) {
  const auto at = [&](size_t i) { return int64_t{ranks[i] / stride % size}; };
  // Lines through neighbours that differ in their coordinate.
  std::map<std::pair<int64_t, int64_t>, size_t> lines;
  for (size_t i = 0; i + 1 < ranks.size(); ++i) {
    const int64_t run = at(i + 1) - at(i), rise = values[i + 1] - values[i];
    if (run == 0 || rise == 0 || rise % run != 0) continue;
    ++lines[{rise / run, values[i] - rise / run * at(i)}];
  }
  if (lines.empty()) return std::nullopt;
  const auto [factor, offset] =
      std::ranges::max_element(lines, {}, [](const auto& line) { return line.second; })->first;
  RankRule rule;
  std::set<int64_t> coordinates;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const bool follows = values[i] == offset + factor * at(i);
    rule.follows.push_back(follows);
    rule.exceptions += follows ? 0 : 1;
    if (follows) coordinates.insert(at(i));
  }
  if (rule.exceptions * 3 > static_cast<int32_t>(ranks.size())) return std::nullopt;
  // Any two values are a straight line: one that does not begin at 0, or end where the next one
  // begins, is there by chance. A rule with exceptions needs more than two.
  const bool bounds = offset == 0 || (offset == factor && factor > 1);
  if (coordinates.size() < 3) {
    if (!bounds || rule.exceptions > 0) return std::nullopt;
    rule.step = std::abs(factor);
  }
  rule.text = AxisText(world, stride, size);
  if (factor != 1) rule.text = fmt::format("{}·{}", factor, rule.text);
  if (offset != 0) rule.text += fmt::format(" {} {}", offset > 0 ? '+' : '-', std::abs(offset));
  return rule;
}

}  // namespace

std::optional<RankRule> FindRankRule(std::span<const int32_t> ranks,
                                     std::span<const int64_t> values) {
  if (ranks.size() < 2) return std::nullopt;
  const int32_t world = ranks.back() + 1;
  std::optional<RankRule> best;
  for (int32_t stride = 1; stride < world; ++stride) {
    if (world % stride != 0) continue;
    for (int32_t size = world / stride; size > 1; --size) {
      if (world / stride % size != 0) continue;
      std::optional<RankRule> rule = FitAxis(ranks, values, world, stride, size);
      if (rule && (!best || rule->exceptions < best->exceptions)) best = std::move(rule);
      if (best && best->exceptions == 0) return best;
    }
  }
  return best;
}

std::optional<RankRule> FindRankRule(std::span<const int32_t> ranks,
                                     std::span<const int64_t> values,
                                     const std::set<int64_t>& sizes) {
  std::optional<RankRule> rule = FindRankRule(ranks, values);
  if (rule && rule->step && !sizes.empty() && !sizes.contains(*rule->step)) rule.reset();
  return rule;
}

}  // namespace strata
