#include "diff/ranks/rank_rule.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>

namespace strata {
namespace {

/// The coordinate of ranks along an axis of a mesh.
struct Axis {
  int32_t world, stride, size;

  int64_t At(int32_t rank) const { return rank / stride % size; }
};

/// `factor` times a coordinate, or the one `shift` places further around the axis, and `offset`.
struct Line {
  int64_t factor, offset, shift = 0;

  int64_t At(int64_t coordinate, int32_t size) const {
    return offset + factor * (shift == 0 ? coordinate : (coordinate + shift) % size);
  }
};

/// The coordinate in words: `rank`, `(rank / 4)`, `((rank + 1) % 8)`.
std::string AxisText(const Axis& axis, int64_t shift) {
  if (axis.stride == 1 && axis.size == axis.world && shift == 0) return "rank";
  std::string text = axis.stride == 1 ? "rank" : fmt::format("rank / {}", axis.stride);
  if (shift != 0) {
    const bool is_back = shift * 2 > axis.size;
    text =
        fmt::format("({} {} {})", text, is_back ? '-' : '+', is_back ? axis.size - shift : shift);
  }
  if (shift != 0 || axis.stride * axis.size != axis.world) text += fmt::format(" % {}", axis.size);
  return fmt::format("({})", text);
}

/// The most frequent key.
template <class Key>
const Key& Most(const std::map<Key, size_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

/// The line on which most neighbours are that differ in their coordinate.
std::optional<Line> FitLine(std::span<const int32_t> ranks, std::span<const int64_t> values,
                            const Axis& axis) {
  std::map<std::pair<int64_t, int64_t>, size_t> lines;
  for (size_t i = 0; i + 1 < ranks.size(); ++i) {
    const int64_t at = axis.At(ranks[i]);
    const int64_t run = axis.At(ranks[i + 1]) - at, rise = values[i + 1] - values[i];
    if (run == 0 || rise == 0 || rise % run != 0) continue;
    ++lines[{rise / run, values[i] - rise / run * at}];
  }
  if (lines.empty()) return std::nullopt;
  const auto [factor, offset] = Most(lines);
  return Line{factor, offset};
}

/// The values of a whole axis, each at a neighbour of its rank: `(rank + 1) % 8`.
std::optional<Line> FitCycle(std::span<const int32_t> ranks, std::span<const int64_t> values,
                             const Axis& axis) {
  const auto [least, most] = std::ranges::minmax(values);
  const int64_t factor = (most - least) / (axis.size - 1);
  if (factor == 0) return std::nullopt;
  std::map<int64_t, size_t> shifts;
  for (size_t i = 0; i < ranks.size(); ++i)
    ++shifts[((values[i] - least) / factor - axis.At(ranks[i]) + axis.size) % axis.size];
  const int64_t shift = Most(shifts);
  if (shift == 0) return std::nullopt;
  return Line{factor, least, shift};
}

std::optional<RankRule> RuleOf(std::span<const int32_t> ranks, std::span<const int64_t> values,
                               const Axis& axis, const std::optional<Line>& line) {
  if (!line) return std::nullopt;
  RankRule rule;
  std::set<int64_t> coordinates;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t at = axis.At(ranks[i]);
    const bool follows = values[i] == line->At(at, axis.size);
    rule.follows.push_back(follows);
    rule.exceptions += follows ? 0 : 1;
    if (follows) coordinates.insert(at);
  }
  if (rule.exceptions * 3 > static_cast<int32_t>(ranks.size())) return std::nullopt;
  // Any two values are a straight line: one that does not begin at 0, or end where the next one
  // begins or just before it, is there by chance. A rule with exceptions needs more than two.
  const auto [factor, offset, shift] = *line;
  const bool bounds = offset == 0 || offset == factor || offset == factor - 1;
  if (coordinates.size() < 3) {
    if (!bounds || rule.exceptions > 0) return std::nullopt;
    rule.step = std::abs(factor);
  }
  rule.text = AxisText(axis, shift);
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
      const Axis axis = {world, stride, size};
      for (const auto& fit : {FitLine, FitCycle}) {
        std::optional<RankRule> rule = RuleOf(ranks, values, axis, fit(ranks, values, axis));
        if (rule && (!best || rule->exceptions < best->exceptions)) best = std::move(rule);
        if (best && best->exceptions == 0) return best;
      }
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
