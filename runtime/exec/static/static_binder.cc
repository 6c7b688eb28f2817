#include "runtime/exec/static/static_binder.h"

#include <algorithm>
#include <string>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/out_variants.h"
#include "runtime/exec/static/substitutes.h"
#include "runtime/exec/step/measured_workspace.h"
#include "runtime/plan/memory/planner.h"

namespace strata {
namespace {

using at::Tensor;
using StepKind = StaticStep::Kind;
using StorageKind = StaticStorage::Kind;

/// An output of this size may lie in memory that is only lent.
constexpr int64_t kNumberBytes = 64;

}  // namespace

Result<std::unique_ptr<StaticProgram>> StaticBinder::Run() {
  const c10::InferenceMode no_autograd;
  BindInputs();
  STRATA_RETURN_IF_ERROR(BindConstants());
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    auto bound = BindOne(static_cast<int32_t>(i));
    if (!bound) {
      return std::move(bound).error().In(fmt::format("graph {} cannot be executed: {}: {}",
                                                     plan_.graph, plan_.steps[i].where,
                                                     Describe(plan_, plan_.steps[i])));
    }
  }
  PlaceMemory();
  for (size_t owner = 0; owner < state_->storages.size(); ++owner) {
    if (state_->storages[owner].kind == StorageKind::kConstant)
      state_->FindAddresses(static_cast<int32_t>(owner));
  }
  CountTransient();
  PlanReleases();
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    StaticStep& step = state_->steps[i];
    step.lets_go = !step.releases.empty() || !step.drops.empty();
    if (step.kind != StepKind::kNothing || step.lets_go) state_->live_steps.push_back(i);
  }
  return std::unique_ptr<StaticProgram>(new StaticProgram(std::move(state_)));
}

void StaticBinder::BindInputs() {
  for (const Plan::Input& input : plan_.inputs) {
    const std::optional<PlanLayout>& layout = Slot(input.slot).layout;
    StaticInput& bound = state_->inputs.emplace_back();
    bound.slot = input.slot;
    if (!layout) {
      MakeDynamic(input.slot);
      continue;
    }
    const int64_t bytes = layout->storage_bytes();
    StorageOf(input.slot) = {StorageKind::kInput, bytes, input.slot};
    state_->TensorAt(input.slot) = TensorOver(EmptyStorage(bytes), *layout);
    bound.own = state_->TensorAt(input.slot).storage().unsafeGetStorageImpl();
    bound.offset = layout->offset;
  }
}

Status StaticBinder::BindConstants() {
  for (const Plan::Constant& constant : plan_.constants) {
    const auto known = std::ranges::find(constants_, constant.path, &Constants::value_type::first);
    if (known == constants_.end()) {
      return Error(ErrorCode::kNotFound, "graph {} cannot be executed: no constant {}", plan_.graph,
                   constant.path);
    }
    StorageOf(constant.slot).kind = StorageKind::kConstant;
    state_->TensorAt(constant.slot) = known->second;
    is_constant_.insert(constant.slot);
  }
  return Ok();
}

Status StaticBinder::BindOne(int32_t index) {
  const PlanStep& step = plan_.steps[static_cast<size_t>(index)];
  StaticStep& bound = state_->steps.emplace_back();
  bound.index = index;
  if (step.kernel >= 0) return BindKernel(step, bound);
  bool is_fixed = true;
  step.ForEachOperand([&](int32_t slot) { is_fixed = is_fixed && IsFixed(slot); });

  if (is_fixed && step.is_view && plan_.options.fold_views) return FoldView(step);
  if (is_fixed && CanHoist(step)) return Hoist(step);
  if (is_fixed && plan_.options.static_memory && !step.is_view && !step.mutates &&
      HaveLayouts(step)) {
    STRATA_TRY(const bool done, BindInto(step, bound));
    if (done) return Ok();
  }
  return BindCall(step, bound, is_fixed);
}

bool StaticBinder::HaveLayouts(const PlanStep& step) const {
  return std::ranges::all_of(step.results, [&](int32_t slot) {
    return slot >= 0 && Slot(slot).layout && OwnerOf(slot) == slot;
  });
}

void StaticBinder::FillStack(const BoundStep& filled, StaticStep& bound) {
  bound.stack = filled.stack;
  bound.is_plain = true;
  for (const TensorSlot& tensor : filled.tensors) {
    if (IsFixed(tensor.slot)) {
      bound.stack[tensor.arg] = state_->TensorAt(tensor.slot);
      bound.is_plain = bound.is_plain && IsPlain(state_->TensorAt(tensor.slot));
    } else {
      bound.dynamic_tensors.push_back(tensor);
      bound.is_plain = false;
    }
  }
  for (const ListSlots& list : filled.lists) {
    const bool is_fixed =
        std::ranges::all_of(list.slots, [&](int32_t slot) { return slot < 0 || IsFixed(slot); });
    if (!is_fixed) {
      bound.dynamic_lists.push_back(list);
      bound.is_plain = false;
      continue;
    }
    bound.stack[list.arg] =
        list.Collect([&](int32_t slot) -> const Tensor& { return state_->TensorAt(slot); });
    for (const int32_t slot : list.slots)
      bound.is_plain = bound.is_plain && slot >= 0 && IsPlain(state_->TensorAt(slot));
  }
  bound.dynamic_numbers = filled.numbers;
  if (!filled.numbers.empty()) bound.is_plain = false;
  if (filled.tensors.empty() && filled.lists.empty()) bound.is_plain = false;
}

Result<torch::jit::Stack> StaticBinder::CallNow(const PlanStep& step) {
  STRATA_TRY(const c10::OperatorHandle op, FindOp(step.op));
  STRATA_TRY(const BoundStep filled, BindStep(step, op));
  StaticStep now;
  FillStack(filled, now);
  try {
    op.callBoxed(&now.stack);
  } catch (const c10::Error& failure) {
    return Error(ErrorCode::kInternal, "{}", failure.what_without_backtrace());
  }
  return std::move(now.stack);
}

Status StaticBinder::FoldView(const PlanStep& step) {
  STRATA_TRY(const torch::jit::Stack stack, CallNow(step));
  ForEachResult(stack, step, [&](int32_t slot, const Tensor& view) {
    state_->TensorAt(slot) = view;
    StorageOf(slot).slots.push_back(slot);
  });
  return Ok();
}

bool StaticBinder::CanHoist(const PlanStep& step) {
  if (!plan_.options.hoist_constants || !step.is_pure || step.is_view) return false;
  bool is_constant = true;
  step.ForEachOperand([&](int32_t slot) {
    is_constant =
        is_constant && is_constant_.contains(OwnerOf(slot)) && !places_.is_written(OwnerOf(slot));
  });
  return is_constant && std::ranges::all_of(step.results, [&](int32_t slot) {
           return slot < 0 || (OwnerOf(slot) == slot && Slot(slot).layout &&
                               !places_.is_output(slot) && !places_.is_written(slot));
         });
}

Status StaticBinder::Hoist(const PlanStep& step) {
  STRATA_TRY(const torch::jit::Stack stack, CallNow(step));
  ForEachResult(stack, step, [&](int32_t slot, const Tensor& result) {
    state_->TensorAt(slot) = result;
    StorageOf(slot).kind = StorageKind::kConstant;
    is_constant_.insert(slot);
  });
  return Ok();
}

void StaticBinder::Place(int32_t slot, int32_t step) {
  StaticStorage& storage = StorageOf(slot);
  storage = {places_.is_output(slot) ? StorageKind::kOutput : StorageKind::kBlock,
             Slot(slot).layout->storage_bytes(), slot};
  state_->TensorAt(slot) = TensorOver(EmptyStorage(storage.bytes), *Slot(slot).layout);
  places_.Add(slot, step);
}

void StaticBinder::Share(int32_t slot, int32_t step,
                         const std::function<bool(int32_t operand)>& may_share) {
  if (plan_.options.in_place) places_.Share(slot, step, may_share);
}

Status StaticBinder::BindCall(const PlanStep& step, StaticStep& bound, bool is_fixed) {
  const PlanStep called = step.mutates ? WithTensorOverload(step) : step;
  STRATA_TRY(bound.op, FindOp(called.op));
  STRATA_TRY(const BoundStep filled, BindStep(called, *bound.op));
  FillStack(filled, bound);
  bound.kind = StepKind::kAdopt;
  bound.has_dynamic_operands = !is_fixed;

  if (step.mutates && is_fixed) {
    bool all_known = true;
    for (const int32_t slot : step.results) {
      if (slot < 0) continue;
      const int32_t operand = OperandWrittenAs(step, slot);
      all_known = all_known && operand >= 0;
      if (operand >= 0) state_->TensorAt(slot) = state_->TensorAt(operand);
    }
    if (all_known) {
      bound.kind = StepKind::kCall;
      return Ok();
    }
  }
  for (const int32_t slot : step.results) {
    if (slot < 0) continue;
    const bool is_own = OwnerOf(slot) == slot && !step.mutates && !step.is_view;
    const bool is_placed = plan_.options.static_memory && plan_.options.arena_results;
    if (!is_own || !Slot(slot).layout) {
      MakeDynamic(slot);
      // Of several, one could be given the place of another, which is free as long as that one
      // lives.
      if (is_own && is_placed && step.results.size() == 1 && CanUseDynamicArena(slot))
        bound.open_place = slot;
      continue;
    }
    if (is_placed) {
      Place(slot, bound.index);
      bound.placed.push_back(slot);
      continue;
    }
    StorageOf(slot) = {StorageKind::kAdopted, Slot(slot).layout->storage_bytes(), slot};
    state_->TensorAt(slot) = TensorOver(EmptyStorage(StorageOf(slot).bytes), *Slot(slot).layout);
  }
  return Ok();
}

bool StaticBinder::CanUseDynamicArena(int32_t slot) const {
  return plan_.options.dynamic_arena && Slot(slot).dynamic_layout &&
         places_.last_use(slot) != BufferAssignment::kForever;
}

void StaticBinder::MakeDynamic(int32_t slot) {
  if (OwnerOf(slot) == slot) StorageOf(slot).kind = StorageKind::kDynamic;
  state_->is_dynamic[static_cast<size_t>(slot)] = true;
}

int32_t StaticBinder::OperandWrittenAs(const PlanStep& step, int32_t result) {
  int32_t found = -1;
  step.ForEachOperand([&](int32_t operand) {
    if (found < 0 && OwnerOf(operand) == OwnerOf(result) &&
        Slot(operand).layout == Slot(result).layout) {
      found = operand;
    }
  });
  return found;
}

void StaticBinder::PlaceMemory() {
  const BufferAssignment::Arena arena = places_.Assign();
  bool has_outputs = false;
  for (size_t owner = 0; owner < state_->storages.size(); ++owner) {
    StaticStorage& storage = state_->storages[owner];
    if (storage.kind != StorageKind::kBlock && storage.kind != StorageKind::kOutput) continue;
    storage.offset = arena.offsets[owner];
    // A number is copied when it is handed out.
    if (storage.kind == StorageKind::kOutput)
      state_->outputs.push_back(static_cast<int32_t>(owner));
    has_outputs =
        has_outputs || (storage.kind == StorageKind::kOutput && storage.bytes > kNumberBytes);
  }
  state_->block_bytes = arena.bytes;
  state_->can_borrow = !has_outputs;
  state_->Borrow(scratch_);
}

void StaticBinder::CountTransient() {
  const auto end = static_cast<int32_t>(plan_.steps.size());
  const auto add = [&](const SizeForm& bytes, int32_t slot, int32_t first, int32_t last) {
    state_->transient.Add(bytes, first, last);
    if (places_.is_output(slot)) state_->transient_outputs.Add(bytes, 0, 0);
  };
  for (const StaticStep& step : state_->steps) {
    const PlanStep& planned = plan_.steps[static_cast<size_t>(step.index)];
    if (step.kind == StepKind::kCall || step.kind == StepKind::kAdopt) {
      const int64_t bytes = MeasuredWorkspaceBytes(plan_, planned) + planned.unread_bytes;
      state_->transient.Add({.constant = bytes}, step.index, step.index);
    }
    if (step.kind != StepKind::kAdopt && step.kind != StepKind::kDynamicKernel) continue;
    for (const int32_t slot : planned.results) {
      if (slot < 0 || OwnerOf(slot) != slot) continue;
      const int32_t last = std::clamp(places_.last_use(slot), step.index, end);
      if (StorageOf(slot).kind == StorageKind::kAdopted) {
        add({.constant = StorageOf(slot).bytes}, slot, step.index, last);
      } else if (state_->is_dynamic[static_cast<size_t>(slot)] && Slot(slot).dynamic_layout) {
        const SizeForm& bytes = Slot(slot).dynamic_layout->bytes;
        const bool has_place = step.kind == StepKind::kDynamicKernel
                                   ? plan_.options.static_memory && plan_.options.arena_results &&
                                         CanUseDynamicArena(slot)
                                   : step.open_place == slot;
        if (has_place) {
          state_->dynamic_arena.Add({.slot = slot,
                                     .bytes = bytes,
                                     .first = step.index,
                                     .last = last,
                                     .free = places_.FreeRanges(step.index, last)});
        } else {
          add(bytes, slot, step.index, last);
        }
      }
    }
  }
}

void StaticBinder::PlanReleases() {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    state_->steps[i].has_dynamic_results = std::ranges::any_of(
        plan_.steps[i].results,
        [&](int32_t slot) { return slot >= 0 && state_->is_dynamic[static_cast<size_t>(slot)]; });
    for (const int32_t slot : plan_.steps[i].kills) {
      if (state_->is_dynamic[static_cast<size_t>(slot)]) state_->steps[i].drops.push_back(slot);
    }
  }
  for (size_t owner = 0; owner < state_->storages.size(); ++owner) {
    const int32_t last = places_.last_use(static_cast<int32_t>(owner));
    if (state_->storages[owner].kind == StorageKind::kAdopted && last >= 0 &&
        last != BufferAssignment::kForever) {
      state_->steps[static_cast<size_t>(last)].releases.push_back(static_cast<int32_t>(owner));
    }
  }
}

Result<std::unique_ptr<StaticProgram>> StaticProgram::Bind(const Plan& plan,
                                                           const Constants& constants,
                                                           const KernelLibrary* kernels,
                                                           const ScratchMemory& scratch) {
  return StaticBinder(plan, constants, kernels, scratch).Run();
}

}  // namespace strata
