#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace strata {

/// The candidate that `word` most likely misspells: fewest insertions, deletions, substitutions and
/// transpositions, at most a third of the longer word. Ties go to the first candidate.
std::optional<std::string_view> ClosestMatch(std::string_view word,
                                             std::span<const std::string> candidates);

/// `, did you mean 'x'` if a candidate is close, else "": the tail of an error message.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace strata
