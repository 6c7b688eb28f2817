#include "bench/diff_eval/methods/methods.h"

#include "diff/diff.h"
#include "diff/patch/apply.h"
#include "diff/patch/make.h"
#include "diff/patch/parse.h"
#include "ir/fingerprint.h"
#include "ir/fx/fx.h"

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

Result<bool> PatchMakesAfter(const GraphDiff& diff) {
  STRATA_TRY(const Patch patch, ParsePatch(MakePatch(diff)));
  STRATA_TRY(const std::unique_ptr<Module> made, ApplyPatch(diff.before.root(), patch));
  const Graph& graph = made->graph({0});
  const FxPrintOptions style{.comments = false};
  return FingerprintOf(graph) == FingerprintOf(diff.after.root()) &&
         PrintFx(graph, style) == PrintFx(diff.after.root(), style);
}

}  // namespace strata::bench
