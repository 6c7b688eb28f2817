#include "runtime/exec/static/static_program.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <ATen/ops/clone.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"
#include "runtime/aten/parallel.h"
#include "runtime/exec/static/static_state.h"
#include "runtime/exec/step/observer.h"

namespace strata {

using at::Tensor;

c10::IValue StaticProgram::State::Dynamic(int32_t slot) {
  const std::optional<int64_t>& number = numbers[static_cast<size_t>(slot)];
  return number ? c10::IValue(*number) : c10::IValue(TensorAt(slot));
}

void StaticProgram::State::Call(const StaticStep& step) {
  if (step.zero_first.defined())
    std::memset(step.zero_first.mutable_data_ptr(), 0, step.zero_first.nbytes());
  stack.assign(step.stack.begin(), step.stack.end());
  for (const TensorSlot& tensor : step.dynamic_tensors)
    stack[tensor.arg] = Dynamic(tensor.slot);
  for (const ListSlots& list : step.dynamic_lists)
    stack[list.arg] =
        list.Collect([&](int32_t slot) -> const at::Tensor& { return TensorAt(slot); });
  for (const NumberSlots& list : step.dynamic_numbers) {
    c10::List<int64_t> numbers;
    for (const NumberSlots::Element& element : list.elements)
      numbers.push_back(element.slot < 0 ? element.number : Dynamic(element.slot).toInt());
    stack[list.arg] = std::move(numbers);
  }
  if (step.is_plain) {
    step.op->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } else {
    step.op->callBoxed(&stack);
  }
}

void StaticProgram::State::Adopt(const PlanStep& step) {
  if (stack.size() == 1 && stack[0].isInt() && step.results.size() == 1 && step.results[0] >= 0) {
    numbers[static_cast<size_t>(step.results[0])] = stack[0].toInt();
  }
  std::vector<std::pair<Tensor, Tensor>> copies;  // home, what belongs there
  ForEachResult(stack, step, [&](int32_t slot, const Tensor& result) {
    Tensor& home = TensorAt(slot);
    if (is_dynamic[static_cast<size_t>(slot)]) {
      home = result;
      return;
    }
    if (result.sizes() != home.sizes()) {
      throw std::runtime_error(fmt::format("returned {}{}, not what was traced",
                                           c10::str(result.sizes()), c10::str(result.strides())));
    }
    const bool lies_as_traced = LiesAs(result, home.sizes(), home.strides()) &&
                                result.storage_offset() == home.storage_offset();
    const bool is_adopted = StorageOf(slot).kind == StaticStorage::Kind::kAdopted;
    if (!lies_as_traced) {
      if (is_adopted) TakeStorage(plan.slots[static_cast<size_t>(slot)].storage);
      copies.emplace_back(home, result.clone());  // it may lie where it belongs
    } else if (is_adopted) {
      SetStorage(plan.slots[static_cast<size_t>(slot)].storage, result.storage());
    } else if (result.storage().data() != home.storage().data()) {
      copies.emplace_back(home, result);
    }
  });
  // One may lie where another belongs.
  if (copies.size() > 1) {
    for (auto& [home, result] : copies)
      result = result.clone();
  }
  for (const auto& [home, result] : copies)
    home.copy_(result);
  stack.clear();
}

void StaticProgram::State::RunKernel(const StaticStep& step) {
  void* const* const addresses = step.addresses.data();
  if (step.units < 2 * step.grain) {
    step.function(addresses, 0, step.units, step.kernel_numbers.data());
    return;
  }
  ParallelFor(step.units, step.grain, [&](int64_t begin, int64_t end) {
    step.function(addresses, begin, end, step.kernel_numbers.data());
  });
}

void StaticProgram::State::RunJoin(const StaticStep& step) {
  const size_t count = step.addresses.size() - 1, bytes = static_cast<size_t>(step.units);
  char* const joined = static_cast<char*>(step.addresses.back());
  for (size_t i = 0; i < count; ++i)
    std::memcpy(joined + i * bytes, step.addresses[i], bytes);
}

void StaticProgram::State::CallPlaced(StaticStep& step) {
  std::vector<ResultBuffer> places;
  for (const int32_t slot : step.placed)
    places.push_back({TensorAt(slot).storage().mutable_data(), TensorAt(slot).storage().nbytes()});
  if (step.open_place >= 0) {
    const int64_t bytes = BytesNow(step.open_place);
    if (void* const place = OpenPlaceOf(step.open_place, bytes))
      places.push_back({place, static_cast<size_t>(bytes)});
  }
  const ArenaAllocations placing(places, step.allocations);
  Call(step);
  if (step.has_dynamic_operands || step.allocations.is_known()) return;
  std::vector<const void*> results(places.size(), nullptr);
  ForEachResult(
      stack, plan.steps[static_cast<size_t>(step.index)], [&](int32_t slot, const Tensor& result) {
        const auto placed = std::ranges::find(step.placed, slot);
        if (placed == step.placed.end()) return;
        results[static_cast<size_t>(placed - step.placed.begin())] = result.storage().data();
      });
  placing.Teach(step.allocations, results);
}

void StaticProgram::State::RunStep(StaticStep& step, ExecutionObserver* observer) {
  switch (step.kind) {
    case StaticStep::Kind::kNothing:
      break;
    case StaticStep::Kind::kCall:
      Call(step);
      break;
    case StaticStep::Kind::kAdopt:
      step.placed.empty() && step.open_place < 0 ? Call(step) : CallPlaced(step);
      Adopt(plan.steps[static_cast<size_t>(step.index)]);
      break;
    case StaticStep::Kind::kKernel:
      RunKernel(step);
      break;
    case StaticStep::Kind::kDynamicKernel:
      RunDynamicKernel(step);
      break;
    case StaticStep::Kind::kJoin:
      RunJoin(step);
      break;
  }
  if (observer != nullptr) Show(plan.steps[static_cast<size_t>(step.index)], *observer);
  if (!step.lets_go) return;
  for (const int32_t owner : step.releases)
    Release(owner);
  for (const int32_t slot : step.drops)
    TensorAt(slot).reset();
}

void StaticProgram::State::Show(const PlanStep& step, ExecutionObserver& observer) {
  for (const int32_t slot : step.results)
    shown.push_back(slot < 0 ? at::Tensor() : TensorAt(slot));
  observer.OnStep(step, shown);
  shown.clear();
}

StaticProgram::StaticProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
StaticProgram::~StaticProgram() = default;

StaticStep& StaticProgram::State::TakeLiveStep(size_t i) {
  // What is computed leaves no room in caches for what is to be computed.
  if (i + 2 < live_steps.size()) {
    steps[live_steps[i + 2]].Fetch();
    __builtin_prefetch(steps[live_steps[i + 1]].addresses.data());
  }
  current_step = live_steps[i];
  return steps[current_step];
}

Result<std::vector<Tensor>> StaticProgram::Run(std::span<const Tensor> inputs,
                                               ExecutionObserver* observer) {
  const c10::InferenceMode no_autograd;
  STRATA_RETURN_IF_ERROR(state_->BindInputs(inputs));
  state_->KeepHeldOutputs();
  state_->EnsureBlock();
  state_->dynamic_arena.BeginRun();
  if (observer != nullptr && observer->WantsAllSteps()) {
    for (state_->current_step = 0; state_->current_step < state_->steps.size();
         ++state_->current_step) {
      state_->RunStep(state_->steps[state_->current_step], observer);
    }
  } else if (StepTimes* const times = observer != nullptr ? observer->times() : nullptr) {
    times->Begin(state_->live_steps);
    for (size_t i = 0; i < state_->live_steps.size(); ++i) {
      StaticStep& step = state_->TakeLiveStep(i);
      state_->RunStep(step, step.has_dynamic_results ? observer : nullptr);
      times->Mark();
    }
    times->End();
  } else {
    for (size_t i = 0; i < state_->live_steps.size(); ++i)
      state_->RunStep(state_->TakeLiveStep(i), observer);
  }
  std::vector<Tensor> outputs = state_->TakeOutputs(inputs);
  state_->ReleaseDynamicInputs();
  state_->stack.clear();
  return outputs;
}

size_t StaticProgram::failed_step() const {
  return state_->current_step;
}

void StaticProgram::Reset() {
  state_->stack.clear();
  state_->shown.clear();
  state_->ReleaseDynamicInputs();
  for (size_t owner = 0; owner < state_->storages.size(); ++owner) {
    if (state_->storages[owner].kind == StaticStorage::Kind::kAdopted) {
      state_->Release(static_cast<int32_t>(owner));
    }
  }
}

MemoryBlock StaticProgram::TakeBlock() {
  MemoryBlock block =
      state_->scratch == nullptr && !state_->HasHeldOutputs() ? state_->block : MemoryBlock{};
  state_->LetGoOfBlock();
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
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const StaticStorage& storage : state_->storages) {
    if (storage.kind == StaticStorage::Kind::kOutput) {
      taken.emplace_back(storage.offset, storage.offset + storage.bytes);
    }
  }
  taken.emplace_back(state_->block.bytes, state_->block.bytes);
  std::ranges::sort(taken);
  int64_t begin = 0, best = 0, bytes = 0;
  for (const auto& [first, last] : taken) {
    if (first - begin > bytes) {
      best = begin;
      bytes = first - begin;
    }
    begin = std::max(begin, (last + 63) / 64 * 64);
  }
  return {.owner = state_->block.memory, .address = state_->Base() + best, .bytes = bytes};
}

PlannedMemory StaticProgram::planned_memory() const {
  TransientMemory all = state_->transient;
  state_->dynamic_arena.AddAll(all);
  const int64_t held = state_->block.memory != nullptr ? state_->block.bytes : state_->block_bytes;
  PlannedMemory memory{.held = state_->scratch != nullptr ? 0 : held,
                       .transient_at_most = all.AtMost(state_->plan.partitions),
                       .outputs = state_->transient_outputs.With(state_->numbers)};
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
