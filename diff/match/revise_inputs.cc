#include "diff/match/revise_inputs.h"

#include "diff/match/inputs.h"

namespace strata {
namespace {

/// Whether an unmatched node takes a piece of `input` and does nothing else.
bool IsPieceOf(const Matching& matching, Side side, EntityId i, EntityId input) {
  return i.valid() && !matching.matched(side, i) && matching.labels(side).piece[i] &&
         matching.labels(side).operands(i)[0].entity == input;
}

}  // namespace

bool ReviseInputs(Matching& matching, const ScopePair& scope) {
  bool revised = false;
  for (EntityId before : scope.ids(kBefore)) {
    const EntityId after = matching.partner(kBefore, before);
    if (!after.valid() || matching.labels(kBefore).kind[before] != EntityKind::kInput) continue;
    const Matching::Made& made = matching.made(kBefore, before);
    if (made.via != Via::kInput || made.confidence > kInputByPlace) continue;
    const Matching::EdgeScore score = matching.Score(before, after);
    if (score.agree > 0) continue;
    // It may also stand where a computation stood, or one stands where it stood.
    const EntityId was = matching.StandIn(kAfter, after), is = matching.StandIn(kBefore, before);
    if (score.contradict == 0 && !was.valid() && !is.valid()) continue;
    // A slice of all of it, say, was removed: who read that reads the input now.
    if (IsPieceOf(matching, kBefore, was, before) || IsPieceOf(matching, kAfter, is, after))
      continue;
    matching.Unmatch(before);
    matching.Veto(before, after);
    revised = true;
  }
  return revised;
}

}  // namespace strata
