#include "runtime/exec/static/bind_context.h"

#include <algorithm>

#include "passes/compile/pointwise.h"
#include "runtime/exec/static/substitutes.h"

namespace strata {

using at::Tensor;

bool BindContext::IsFixed(SlotId slot) {
  return Slot(slot).layout && state_.TensorAt(slot).defined() && !state_.is_dynamic[slot];
}

bool BindContext::HaveLayouts(const PlanStep& step) const {
  return std::ranges::all_of(step.results, [&](SlotId slot) {
    return slot.valid() && Slot(slot).layout && OwnerOf(slot) == slot;
  });
}

SlotId BindContext::OperandWrittenAs(const PlanStep& step, SlotId result) const {
  SlotId found;
  step.ForEachOperand([&](SlotId operand) {
    if (!found.valid() && OwnerOf(operand) == OwnerOf(result) &&
        Slot(operand).layout == Slot(result).layout) {
      found = operand;
    }
  });
  return found;
}

bool BindContext::IsSeparate(SlotId slot) const {
  return plan_.options.separate_outputs && assignment_.is_output(slot);
}

const Tensor* BindContext::PlaceInDonated(SlotId slot, StepId index) {
  if (IsSeparate(slot)) return nullptr;
  const SlotId input = assignment_.TakeDonated(slot, index);
  if (!input.valid()) return nullptr;
  state_.homes[slot] = input;
  StorageOf(slot).slots.push_back(slot);
  PlanLayout layout = *Slot(slot).layout;
  layout.offset += TensorAt(input).storage_offset();
  state_.TensorAt(slot) = TensorOver(TensorAt(input).storage(), layout);
  return &state_.TensorAt(slot);
}

const Tensor& BindContext::Place(SlotId slot, StepId index) {
  if (const Tensor* const placed = PlaceInDonated(slot, index)) return *placed;
  using Kind = StaticStorage::Kind;
  StaticStorage& storage = StorageOf(slot);
  storage = {assignment_.is_output(slot) ? Kind::kOutput : Kind::kBlock,
             Slot(slot).layout->storage_bytes(), slot};
  if (IsSeparate(slot)) {
    storage.kind = Kind::kAdopted;
    state_.steps[index].takes.push_back(slot);
  } else {
    assignment_.Add(slot, index);
  }
  return state_.TensorAt(slot) = TensorOver(EmptyStorage(storage.bytes), *Slot(slot).layout);
}

const Tensor& BindContext::PlaceOnHost(SlotId slot, StepId index) {
  StaticStorage& storage = StorageOf(slot);
  storage = {StaticStorage::Kind::kHost, Slot(slot).layout->storage_bytes(), slot};
  const StepId last = std::max(assignment_.last_use(slot), index);
  host_requests_.push_back({.bytes = storage.bytes, .first = index.index, .last = last.index});
  host_owners_.push_back(slot);
  return state_.TensorAt(slot) = TensorOver(EmptyStorage(storage.bytes), *Slot(slot).layout);
}

int64_t BindContext::AssignHost() {
  const MemoryPlan memory = PlanMemory(host_requests_);
  for (size_t i = 0; i < host_owners_.size(); ++i)
    StorageOf(host_owners_[i]).offset = memory.offsets[i];
  return memory.bytes;
}

void BindContext::Share(SlotId slot, StepId index,
                        const std::function<bool(SlotId operand)>& may_share) {
  if (plan_.options.in_place && !IsSeparate(slot)) assignment_.Share(slot, index, may_share);
}

void BindContext::ShareOperands(const PlanStep& step, SlotId slot, StepId index) {
  const FusibleOp* const fusible = FindFusible(step.op);
  if (fusible != nullptr && fusible->kind == FusionKind::kPointwise) {
    Share(slot, index, [](SlotId /*operand*/) { return true; });
  } else if (ReadsRowsFirst(step)) {
    Share(slot, index, [&](SlotId operand) { return operand == step.args[0].slot; });
  }
}

void BindContext::MakeDynamic(SlotId slot) {
  if (OwnerOf(slot) == slot) StorageOf(slot).kind = StaticStorage::Kind::kDynamic;
  state_.is_dynamic[slot] = true;
}

bool BindContext::CanUseArena(SlotId slot) const {
  const PlanOptions& options = plan_.options;
  return options.static_memory && options.arena_results && options.dynamic_arena &&
         Slot(slot).dynamic_layout && assignment_.last_use(slot) != BufferAssignment::kForever;
}

Tensor BindContext::Alias(SlotId slot, const PlanLayout& layout) {
  Tensor alias = TensorOver(state_.TensorAt(slot).storage(), layout);
  StorageOf(slot).aliases.push_back(alias);
  return alias;
}

void BindContext::BindArguments(Step& step, const std::vector<SlotId>& slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    StorageOf(slots[i]).uses.push_back(
        {.step = &step, .argument = i, .tensor = TensorAt(slots[i]).unsafeGetTensorImpl()});
  }
}

}  // namespace strata
