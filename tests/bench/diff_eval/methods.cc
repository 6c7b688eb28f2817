#include "tests/bench/diff_eval/methods.h"

namespace strata::bench {
namespace {

Result<Partners> MatchByStrata(const Graph& before, const Graph& after) {
  STRATA_TRY(const GraphDiff diff, Diff(before, after));
  return PartnersOf(diff);
}

}  // namespace

const std::vector<Method>& Methods(bool baselines) {
  static const std::vector<Method> ours = {Method{std::string(kOurMethod), MatchByStrata}};
  static const std::vector<Method> all = {
      ours[0],
      Method{"names", MatchByName},
      Method{"lines", MatchByLines},
      Method{"stripped", MatchByStrippedLines},
      Method{"hlo_diff", MatchLikeHloDiff},
  };
  return baselines ? all : ours;
}

}  // namespace strata::bench
