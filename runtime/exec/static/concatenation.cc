#include "runtime/exec/static/concatenation.h"

#include <cstring>
#include <vector>

#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"

namespace strata {
namespace {

class Concatenation final : public Step {
 public:
  /// `count` operands of `bytes` each, then the result.
  Concatenation(size_t count, size_t bytes) : addresses_(count + 1), bytes_(bytes) {}

  void Run(StaticState& /*state*/) override {
    char* const joined = static_cast<char*>(addresses_.back());
    for (size_t i = 0; i + 1 < addresses_.size(); ++i)
      std::memcpy(joined + i * bytes_, addresses_[i], bytes_);
  }
  void SetAddress(size_t argument, void* data) override { addresses_[argument] = data; }

 private:
  std::vector<void*> addresses_;
  size_t bytes_;
};

}  // namespace

Result<Binding> BindConcatenation(const PlanStep& step, StepId index, BindContext& context) {
  // stack(Tensor[] tensors, int dim=0) -> Tensor
  if (step.op != "aten.stack.default" || !step.kwargs.empty()) return Binding();
  if (step.args.size() > 1 && (step.args[1].kind != ArgKind::kInt || step.args[1].integer != 0))
    return Binding();
  const SlotId slot = step.results[0];
  const PlanLayout& layout = *context.Slot(slot).layout;  // [operands, …]
  size_t bytes = 0;
  std::vector<SlotId> slots;
  for (const PlanArg& element : step.args[0].elements) {
    const at::Tensor& operand = context.TensorAt(element.slot);
    if (!IsPlain(operand) || !operand.is_contiguous() ||
        ToDType(operand.scalar_type()) != layout.dtype) {
      return Binding();
    }
    bytes = operand.nbytes();
    slots.push_back(element.slot);
  }
  if (slots.empty() || !TensorOver(EmptyStorage(0), layout).is_contiguous()) return Binding();
  context.Place(slot, index);
  auto bound = std::make_unique<Concatenation>(slots.size(), bytes);
  slots.push_back(slot);
  context.BindArguments(*bound, slots);
  return Bound(std::move(bound));
}

}  // namespace strata
