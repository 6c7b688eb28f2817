#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/diff_eval/scores/score.h"
#include "ir/graph.h"

namespace strata::bench {

/// A way to match two graphs, ours or one to compare with.
struct Method {
  std::string name;
  std::function<Result<Partners>(const Graph&, const Graph&)> match;
};

inline constexpr std::string_view kOurMethod = "strata";

/// Ours first, then the baselines if wanted.
const std::vector<Method>& Methods(bool baselines);

/// B1: equal names.
Result<Partners> MatchByName(const Graph& before, const Graph& after);
/// B2: Myers' line diff of the printed texts.
Result<Partners> MatchByLines(const Graph& before, const Graph& after);
/// B3: the same with the numbers at the ends of names taken away.
Result<Partners> MatchByStrippedLines(const Graph& before, const Graph& after);
/// B5: the matchers of XLA's hlo_diff, on one flat graph.
Result<Partners> MatchLikeHloDiff(const Graph& before, const Graph& after);

/// Whether the edit script of a diff, written and read again, makes the after graph: by its
/// fingerprint, and letter by letter as FX text without comments.
/// Errors: the script cannot be read or applied.
Result<bool> PatchMakesAfter(const GraphDiff& diff);

}  // namespace strata::bench
