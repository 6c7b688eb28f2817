#include "base/suggest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace strata {
namespace {

/// Optimal string alignment distance: Levenshtein with swaps of neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> ClosestMatch(std::string_view word,
                                             std::span<const std::string> candidates) {
  std::optional<std::string_view> closest;
  size_t closest_distance = 0;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    // A name far longer than any candidate is not a misspelling, and not worth quadratic time.
    if (longer > 2 * std::min(word.size(), candidate.size()) + 2) continue;
    const size_t distance = EditDistance(word, candidate);
    if (distance > std::max<size_t>(1, longer / 3)) continue;
    if (!closest || distance < closest_distance) {
      closest = candidate;
      closest_distance = distance;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::optional<std::string_view> closest = ClosestMatch(word, candidates);
  return closest ? fmt::format(", did you mean '{}'", *closest) : std::string();
}

}  // namespace strata
