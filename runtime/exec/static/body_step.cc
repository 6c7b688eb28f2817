#include "runtime/exec/static/body_step.h"

#include <memory>
#include <utility>

#include "runtime/exec/step/body_call.h"

namespace strata {
namespace {

class BodyStep final : public Step {
 public:
  BodyStep(const PlanStep& step, BodyCall call) : step_(step), call_(std::move(call)) {}

  void Run(StaticState& state) override {
    std::vector<at::Tensor> results = call_.Run([&](SlotId slot) {
      return state.is_dynamic[slot] ? state.Dynamic(slot) : c10::IValue(state.TensorAt(slot));
    });
    for (size_t i = 0; i < results.size() && i < step_.results.size(); ++i)
      if (step_.results[i].valid()) state.TensorAt(step_.results[i]) = std::move(results[i]);
  }
  bool CallsOperator() const override { return true; }

 private:
  const PlanStep& step_;
  BodyCall call_;
};

}  // namespace

Result<Binding> BindBodyStep(const PlanStep& step, StepId /*index*/, BindContext& context) {
  if (!step.runs_bodies) return Binding();
  STRATA_TRY(BodyCall call, BodyCall::Bind(step, context.bodies()));
  for (const SlotId slot : step.results)
    if (slot.valid()) context.MakeDynamic(slot);
  return Bound(std::make_unique<BodyStep>(step, std::move(call)));
}

}  // namespace strata
