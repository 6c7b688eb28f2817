#include "runtime/exec/static/static_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <c10/core/InferenceMode.h>

#include "runtime/exec/static/static_state.h"
#include "runtime/exec/step/observer.h"

namespace strata {

using at::Tensor;

namespace {

/// Begin and end of it in a block of `bytes`.
std::pair<int64_t, int64_t> LargestPartWithoutOutputs(const StaticState& state, int64_t bytes) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const StaticStorage& storage : state.storages) {
    if (storage.kind == StaticStorage::Kind::kOutput)
      taken.emplace_back(storage.offset, storage.offset + storage.bytes);
  }
  taken.emplace_back(bytes, bytes);
  std::ranges::sort(taken);
  std::pair<int64_t, int64_t> best{0, 0};
  int64_t begin = 0;
  for (const auto& [first, last] : taken) {
    if (first - begin > best.second - best.first) best = {begin, first};
    begin = std::max(begin, (last + 63) / 64 * 64);
  }
  return best;
}

}  // namespace

c10::IValue StaticState::Dynamic(SlotId slot) {
  const std::optional<int64_t>& number = numbers[slot];
  return number ? c10::IValue(*number) : c10::IValue(TensorAt(slot));
}

void StaticState::RunStep(StepId index, ExecutionObserver* observer) {
  StaticStep& step = steps[index];
  for (const SlotId owner : step.takes)
    TakeStorage(owner);
  if (step.work != nullptr) step.work->Run(*this);
  if (observer != nullptr) Show(plan.steps[index], *observer);
  if (!step.lets_go) return;
  for (const SlotId owner : step.releases)
    Release(owner);
  for (const SlotId slot : step.drops)
    TensorAt(slot).reset();
}

void StaticState::Show(const PlanStep& step, ExecutionObserver& observer) {
  AwaitTransfers();
  for (const SlotId slot : step.results)
    shown.push_back(!slot.valid() ? at::Tensor() : TensorAt(slot));
  observer.OnStep(step, shown);
  shown.clear();
}

StaticProgram::StaticProgram(std::unique_ptr<StaticState> state) : state_(std::move(state)) {}
StaticProgram::~StaticProgram() = default;

Result<std::vector<Tensor>> StaticProgram::Run(std::span<const Tensor> inputs,
                                               ExecutionObserver* observer) {
  const c10::InferenceMode no_autograd;
  STRATA_RETURN_IF_ERROR(state_->BindInputs(inputs));
  state_->KeepHeldOutputs();
  state_->EnsureBlock();
  STRATA_RETURN_IF_ERROR(state_->EnsureHostBlock());
  state_->dynamic_arena.BeginRun();
  if (observer != nullptr && observer->WantsAllSteps()) {
    for (const StepId index : IdsOf(state_->steps)) {
      state_->current_step = index;
      state_->RunStep(index, observer);
    }
  } else if (StepTimes* const times = observer != nullptr ? observer->times() : nullptr) {
    times->Begin(state_->live_steps);
    for (const StepId index : state_->live_steps) {
      state_->current_step = index;
      state_->RunStep(index, state_->steps[index].has_dynamic_results ? observer : nullptr);
      times->Mark();
    }
    times->End();
  } else {
    for (const StepId index : state_->live_steps) {
      state_->current_step = index;
      state_->RunStep(index, observer);
    }
  }
  state_->AwaitTransfers();
  std::vector<Tensor> outputs = state_->TakeOutputs(inputs);
  state_->ReleaseDynamicInputs();
  state_->stack.clear();
  return outputs;
}

StepId StaticProgram::failed_step() const {
  return state_->current_step;
}

void StaticProgram::Reset() {
  state_->AwaitTransfers();
  state_->stack.clear();
  state_->shown.clear();
  state_->ReleaseDynamicInputs();
  for (const SlotId owner : IdsOf(state_->storages)) {
    if (state_->storages[owner].kind == StaticStorage::Kind::kAdopted) state_->Release(owner);
  }
}

MemoryBlock StaticProgram::TakeBlock() {
  MemoryBlock block =
      state_->scratch == nullptr && !state_->HasHeldOutputs() ? state_->block : MemoryBlock{};
  state_->LetGoOfBlock();
  state_->LetGoOfHostBlock();
  return block;
}

void StaticProgram::GiveBlock(MemoryBlock block) {
  if (block.memory != nullptr && block.bytes >= state_->block_bytes)
    state_->UseBlock(std::move(block));
}

void StaticProgram::Borrow(const ScratchMemory& scratch) {
  state_->Borrow(scratch);
}

bool StaticProgram::lends_outputs() const {
  return !state_->can_borrow;
}

ScratchMemory StaticProgram::scratch() {
  state_->EnsureBlock();
  const auto [begin, end] = LargestPartWithoutOutputs(*state_, state_->block.bytes);
  return {.owner = state_->block.memory, .address = state_->Base() + begin, .bytes = end - begin};
}

PlannedMemory StaticProgram::planned_memory() const {
  TransientMemory all = state_->transient;
  state_->dynamic_arena.AddAll(all);
  const int64_t held = state_->block.memory != nullptr ? state_->block.bytes : state_->block_bytes;
  const auto [begin, end] = LargestPartWithoutOutputs(*state_, held);
  PlannedMemory memory{.held = state_->scratch != nullptr ? 0 : held,
                       .lendable = state_->scratch != nullptr ? 0 : end - begin,
                       .borrows = state_->can_borrow,
                       .constants = state_->hoisted_bytes,
                       .transient_at_most = all.AtMost(state_->plan.partitions),
                       .outputs = state_->transient_outputs.With(state_->numbers),
                       .offloaded = state_->host_bytes};
  const bool has_run =
      std::ranges::any_of(state_->numbers, [](const auto& number) { return number.has_value(); });
  if (!has_run && memory.transient_at_most) {
    memory.transient = *memory.transient_at_most;
    return memory;
  }
  TransientMemory transient = state_->transient;
  state_->dynamic_arena.AddUnallocated(state_->numbers, transient);
  memory.transient = transient.With(state_->numbers);
  return memory;
}

}  // namespace strata
