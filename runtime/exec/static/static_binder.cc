#include "runtime/exec/static/static_binder.h"

#include <algorithm>
#include <string>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "passes/memory/offloadable.h"
#include "runtime/aten/out_variants.h"
#include "runtime/exec/static/operator_stack.h"
#include "runtime/exec/static/step_kinds.h"
#include "runtime/exec/step/measured_workspace.h"
#include "runtime/plan/memory/planner.h"

namespace strata {
namespace {

using at::Tensor;
using StorageKind = StaticStorage::Kind;

/// An output of this size may lie in memory that is only lent.
constexpr int64_t kNumberBytes = 64;

}  // namespace

Result<std::unique_ptr<StaticProgram>> StaticBinder::Run() {
  const c10::InferenceMode no_autograd;
  BindInputs();
  STRATA_RETURN_IF_ERROR(BindConstants());
  for (const StepId id : IdsOf(plan_.steps)) {
    auto bound = BindOne(id);
    if (!bound) {
      return std::move(bound).error().In(fmt::format("graph {} cannot be executed: {}: {}",
                                                     plan_.graph, plan_.steps[id].where,
                                                     Describe(plan_, plan_.steps[id])));
    }
  }
  PlaceMemory();
  for (const SlotId owner : IdsOf(state_->storages)) {
    if (state_->storages[owner].kind == StorageKind::kConstant) state_->UpdateAddresses(owner);
  }
  CountTransient();
  PlanReleases();
  for (const StepId id : IdsOf(state_->steps)) {
    StaticStep& step = state_->steps[id];
    step.lets_go = !step.releases.empty() || !step.drops.empty();
    if (step.work != nullptr || step.lets_go) state_->live_steps.push_back(id);
  }
  return std::unique_ptr<StaticProgram>(new StaticProgram(std::move(state_)));
}

void StaticBinder::BindInputs() {
  for (const Plan::Input& input : plan_.inputs) {
    const std::optional<PlanLayout>& layout = context_.Slot(input.slot).layout;
    StaticInput& bound = state_->inputs.emplace_back();
    bound.slot = input.slot;
    if (!layout) {
      context_.MakeDynamic(input.slot);
      continue;
    }
    const int64_t bytes = layout->storage_bytes();
    context_.StorageOf(input.slot) = {StorageKind::kInput, bytes, input.slot};
    state_->TensorAt(input.slot) = TensorOver(EmptyStorage(bytes), *layout);
    bound.own = state_->TensorAt(input.slot).storage().unsafeGetStorageImpl();
    bound.offset = layout->offset;
    state_->input_of.emplace(bound.own, state_->inputs.size() - 1);
  }
}

Status StaticBinder::BindConstants() {
  for (const Plan::Constant& constant : plan_.constants) {
    const auto known = std::ranges::find(constants_, constant.path, &Constants::value_type::first);
    if (known == constants_.end()) {
      return Error(ErrorCode::kNotFound, "graph {} cannot be executed: no constant {}", plan_.graph,
                   constant.path);
    }
    context_.StorageOf(constant.slot).kind = StorageKind::kConstant;
    state_->TensorAt(constant.slot) = known->second;
    is_constant_.insert(constant.slot);
  }
  return Ok();
}

Status StaticBinder::BindOne(StepId index) {
  const PlanStep& step = plan_.steps[index];
  bool is_fixed = !step.kernel.valid();
  step.ForEachOperand([&](SlotId slot) { is_fixed = is_fixed && context_.IsFixed(slot); });
  if (is_fixed && step.is_view && plan_.options.fold_views) return FoldView(step);
  if (is_fixed && CanHoist(step)) return Hoist(step);
  STRATA_TRY(Binding binding, BindToKind(step, index, context_));
  state_->steps[index].work = std::move(binding.work);
  return Ok();
}

Result<torch::jit::Stack> StaticBinder::CallNow(const PlanStep& step, std::string_view name) {
  STRATA_TRY(const c10::OperatorHandle op, FindOp(name));
  STRATA_TRY(const OperatorStack call, OperatorStack::Bind(step, op, context_));
  return call.CallNow();
}

Status StaticBinder::FoldView(const PlanStep& step) {
  // A reshape copies what strides do not let it view, but has none yet: `view` refuses.
  const std::string_view op =
      step.op == "aten.reshape.default" ? "aten.view.default" : std::string_view(step.op);
  STRATA_TRY(const torch::jit::Stack stack, CallNow(step, op));
  ForEachResult(stack, step, [&](SlotId slot, const Tensor& view) {
    state_->TensorAt(slot) = view;
    context_.StorageOf(slot).slots.push_back(slot);
  });
  return Ok();
}

bool StaticBinder::CanHoist(const PlanStep& step) {
  if (!plan_.options.hoist_constants || !step.is_pure || step.is_view || step.runs_bodies)
    return false;
  bool is_constant = true;
  step.ForEachOperand([&](SlotId slot) {
    is_constant = is_constant && is_constant_.contains(context_.OwnerOf(slot)) &&
                  !context_.assignment().is_written(context_.OwnerOf(slot));
  });
  return is_constant && std::ranges::all_of(step.results, [&](SlotId slot) {
           return !slot.valid() || (context_.OwnerOf(slot) == slot && context_.Slot(slot).layout &&
                                    !context_.assignment().is_output(slot) &&
                                    !context_.assignment().is_written(slot));
         });
}

Status StaticBinder::Hoist(const PlanStep& step) {
  STRATA_TRY(const torch::jit::Stack stack, CallNow(step, step.op));
  ForEachResult(stack, step, [&](SlotId slot, const Tensor& result) {
    state_->TensorAt(slot) = result;
    context_.StorageOf(slot).kind = StorageKind::kConstant;
    state_->hoisted_bytes += static_cast<int64_t>(result.storage().nbytes());
    is_constant_.insert(slot);
  });
  return Ok();
}

void StaticBinder::PlaceMemory() {
  const BufferAssignment::Arena arena = context_.assignment().Assign();
  bool has_outputs = false;
  for (const SlotId owner : IdsOf(state_->storages)) {
    StaticStorage& storage = state_->storages[owner];
    if (storage.kind != StorageKind::kBlock && storage.kind != StorageKind::kOutput) continue;
    storage.offset = arena.offsets[owner];
    // A number is copied when it is handed out.
    if (storage.kind == StorageKind::kOutput) state_->outputs.push_back(owner);
    has_outputs =
        has_outputs || (storage.kind == StorageKind::kOutput && storage.bytes > kNumberBytes);
  }
  state_->block_bytes = arena.bytes;
  state_->host_bytes = context_.AssignHost();
  state_->can_borrow = !has_outputs;
  state_->Borrow(scratch_);
}

void StaticBinder::CountTransient() {
  for (const StepId index : IdsOf(plan_.steps)) {
    const PlanStep& planned = plan_.steps[index];
    const Step* const work = state_->steps[index].work.get();
    if (work == nullptr) continue;
    if (work->CallsOperator()) {
      const int64_t bytes = MeasuredWorkspaceBytes(plan_, planned) + planned.unread_bytes;
      state_->transient.Add({.constant = bytes}, index.index, index.index);
    }
    for (const SlotId slot : planned.results) {
      if (!slot.valid() || context_.OwnerOf(slot) != slot) continue;
      const StepId last =
          std::clamp(context_.assignment().last_use(slot), index, plan_.steps.end_id());
      if (context_.StorageOf(slot).kind == StorageKind::kAdopted) {
        AddTransient({.constant = context_.StorageOf(slot).bytes}, slot, index, last);
      } else if (state_->is_dynamic[slot] && context_.Slot(slot).dynamic_layout &&
                 planned.op != kOffloadOp) {
        const SizeForm& bytes = context_.Slot(slot).dynamic_layout->bytes;
        if (work->UsesArena(slot)) {
          state_->dynamic_arena.Add({.slot = slot,
                                     .bytes = bytes,
                                     .first = index.index,
                                     .last = last.index,
                                     .free = context_.assignment().FreeRanges(index, last)});
        } else {
          AddTransient(bytes, slot, index, last);
        }
      }
    }
  }
}

void StaticBinder::AddTransient(const SizeForm& bytes, SlotId slot, StepId first, StepId last) {
  state_->transient.Add(bytes, first.index, last.index);
  if (context_.assignment().is_output(slot)) state_->transient_outputs.Add(bytes, 0, 0);
}

void StaticBinder::PlanReleases() {
  for (const StepId id : IdsOf(plan_.steps)) {
    StaticStep& step = state_->steps[id];
    step.has_dynamic_results = std::ranges::any_of(plan_.steps[id].results, [&](SlotId slot) {
      return slot.valid() && state_->is_dynamic[slot];
    });
    for (const SlotId slot : plan_.steps[id].kills) {
      if (state_->is_dynamic[slot]) step.drops.push_back(slot);
    }
  }
  for (const SlotId owner : IdsOf(state_->storages)) {
    const StepId last = context_.assignment().last_use(owner);
    if (state_->storages[owner].kind == StorageKind::kAdopted && last.valid() &&
        last != BufferAssignment::kForever) {
      state_->steps[last].releases.push_back(owner);
    }
  }
}

Result<std::unique_ptr<StaticProgram>> StaticProgram::Bind(const Plan& plan,
                                                           const Constants& constants,
                                                           const KernelLibrary* kernels,
                                                           const BodyPrograms& bodies,
                                                           const ScratchMemory& scratch) {
  return StaticBinder(plan, constants, kernels, bodies, scratch).Run();
}

}  // namespace strata
