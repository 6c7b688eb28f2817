#include "runtime/exec/boxed/plan_pieces.h"

#include <set>

namespace strata {
namespace {

/// Inputs and outputs of a piece.
class PieceBounds {
 public:
  explicit PieceBounds(const Plan& plan) : last_reader_(plan.slots.size(), StepId{-1}) {
    for (const StepId id : IdsOf(plan.steps))
      plan.steps[id].ForEachOperand([&](SlotId slot) { last_reader_[slot] = id; });
    for (const SlotId slot : plan.outputs)
      if (slot.valid()) last_reader_[slot] = plan.steps.end_id();
  }

  void Set(const Plan& plan, PlanPiece& piece) const {
    std::set<SlotId> known;  // read or made so far
    for (StepId id = piece.first; id < piece.end; ++id.index) {
      const PlanStep& step = plan.steps[id];
      step.ForEachOperand([&](SlotId slot) {
        if (known.insert(slot).second) piece.inputs.push_back(slot);
      });
      for (const SlotId slot : step.results) {
        if (!slot.valid()) continue;
        known.insert(slot);
        if (last_reader_[slot] >= piece.end) piece.outputs.push_back(slot);
      }
    }
  }

 private:
  IdVector<SlotId, StepId> last_reader_;
};

}  // namespace

Result<std::vector<PlanPiece>> PiecesOf(const Plan& plan) {
  std::vector<PlanPiece> pieces;
  for (const StepId id : IdsOf(plan.steps)) {
    const PlanStep& step = plan.steps[id];
    const bool is_captured = !step.is_outside;
    if (is_captured && step.stream != 0 && !step.is_view)
      return Error(ErrorCode::kInternal, "{} is captured on a side stream", step.where);
    if (pieces.empty() || pieces.back().is_captured != is_captured)
      pieces.push_back(
          {.first = id, .end = id, .is_captured = is_captured, .inputs = {}, .outputs = {}});
    pieces.back().end = StepId{id.index + 1};
  }
  const PieceBounds bounds(plan);
  for (PlanPiece& piece : pieces)
    if (piece.is_captured) bounds.Set(plan, piece);
  return pieces;
}

}  // namespace strata
