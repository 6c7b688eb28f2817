#include "runtime/exec/static/allocating_call.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/clone.h>

#include <fmt/format.h>

#include "ir/ops.h"
#include "runtime/aten/out_variants.h"
#include "runtime/exec/static/arena_allocations.h"
#include "runtime/exec/static/operator_stack.h"
#include "runtime/exec/static/substitutes.h"

namespace strata {
namespace {

using at::Tensor;

class AllocatingCall final : public Step {
 public:
  AllocatingCall(const PlanStep& step, OperatorStack call, bool has_dynamic_operands)
      : step_(step), call_(std::move(call)), has_dynamic_operands_(has_dynamic_operands) {}

  /// The result has memory in the block.
  void Preallocate(SlotId slot) { preallocated_.push_back(slot); }
  /// A collective whose result may have to be copied is done when the step is.
  void WaitBy(const c10::OperatorHandle& wait) { wait_ = wait; }
  /// The result, of data-dependent size, is allocated in the dynamic arena if there is room.
  void UseArena(SlotId slot) { arena_slot_ = slot; }

  void Run(StaticState& state) override {
    if (preallocated_.empty() && !arena_slot_.valid()) {
      call_.Call(state);
    } else {
      CallPreallocated(state);
    }
    if (wait_) wait_->callBoxed(&state.stack);
    Adopt(state);
  }
  bool CallsOperator() const override { return true; }
  bool UsesArena(SlotId slot) const override { return arena_slot_ == slot; }

 private:
  void CallPreallocated(StaticState& state) {
    std::vector<ResultBuffer> places;
    for (const SlotId slot : preallocated_) {
      const c10::Storage& storage = state.TensorAt(slot).storage();
      places.push_back({storage.mutable_data(), storage.nbytes()});
    }
    if (arena_slot_.valid()) {
      const int64_t bytes = state.BytesNow(arena_slot_);
      if (void* const address = state.AllocateInArena(arena_slot_, bytes))
        places.push_back({address, static_cast<size_t>(bytes)});
    }
    const ArenaAllocations placing(places, allocations_);
    call_.Call(state);
    if (has_dynamic_operands_ || allocations_.is_known()) return;
    std::vector<const void*> results(places.size(), nullptr);
    ForEachResult(state.stack, step_, [&](SlotId slot, const Tensor& result) {
      const auto place = std::ranges::find(preallocated_, slot);
      if (place == preallocated_.end()) return;
      results[static_cast<size_t>(place - preallocated_.begin())] = result.storage().data();
    });
    placing.Teach(allocations_, results);
  }

  /// Makes what the operator returned the tensors of its results.
  void Adopt(StaticState& state) {
    torch::jit::Stack& stack = state.stack;
    if (stack.size() == 1 && stack[0].isInt() && step_.results.size() == 1 &&
        step_.results[0].valid())
      state.numbers[step_.results[0]] = stack[0].toInt();
    std::vector<std::pair<Tensor, Tensor>> copies;  // the program's tensor, the operator's
    ForEachResult(stack, step_, [&](SlotId slot, const Tensor& result) {
      AdoptResult(state, slot, result, copies);
    });
    // One result may lie where another belongs.
    if (copies.size() > 1) {
      for (auto& [tensor, result] : copies)
        result = result.clone();
    }
    for (const auto& [tensor, result] : copies)
      tensor.copy_(result);
    stack.clear();
  }

  static void AdoptResult(StaticState& state, SlotId slot, const Tensor& result,
                          std::vector<std::pair<Tensor, Tensor>>& copies) {
    Tensor& tensor = state.TensorAt(slot);
    if (state.is_dynamic[slot]) {
      tensor = result;
      return;
    }
    if (result.sizes() != tensor.sizes()) {
      throw std::runtime_error(fmt::format("returned {}{}, not what was traced",
                                           c10::str(result.sizes()), c10::str(result.strides())));
    }
    const SlotId owner = state.plan.slots[slot].storage;
    const bool is_adopted = state.StorageOf(slot).kind == StaticStorage::Kind::kAdopted;
    // One that is an operand, unknown to the plan, lies in memory that others reuse.
    // An operator may return another type than the graph states: it is converted.
    const bool has_layout = result.dtype() == tensor.dtype() &&
                            HasLayout(result, tensor.sizes(), tensor.strides()) &&
                            result.storage_offset() == tensor.storage_offset() &&
                            !(is_adopted && state.IsInBlock(result));
    if (!has_layout) {
      if (is_adopted) state.TakeStorage(owner);
      copies.emplace_back(tensor, result.clone());  // it may lie where it belongs
    } else if (is_adopted) {
      state.SetStorage(owner, result.storage());
    } else if (result.storage().data() != tensor.storage().data()) {
      copies.emplace_back(tensor, result);
    }
  }

  const PlanStep& step_;
  OperatorStack call_;
  std::optional<c10::OperatorHandle> wait_;
  bool has_dynamic_operands_;  // their layouts change, and with them the allocations
  std::vector<SlotId> preallocated_;
  SlotId arena_slot_;
  AllocationOrder allocations_;
};

/// Operators of oneDNN take what they need inside from ATen's allocator, too, and return it by its
/// address (raw_allocate): a place of the arena cannot be returned so.
bool AllocatesByAddress(std::string_view op) {
  constexpr std::string_view kPrefixes[] = {"aten.convolution", "aten._convolution", "aten.mkldnn"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return op.starts_with(prefix); });
}

bool IsNarrow(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16;
}

/// Whether the result is a statistic, in the type of the operands that are wider: on CPUs, a norm
/// of bf16 numbers with f32 weights returns f32 statistics, which its backward expects. PyTorch's
/// texts say bf16. Source: aten/src/ATen/native/cpu/mixed_data_type.h.
bool IsWiderStatistic(const PlanStep& step, size_t result, BindContext& context) {
  constexpr std::string_view kNorms[] = {"aten.native_batch_norm", "aten.native_group_norm",
                                         "aten.native_layer_norm"};
  const auto& layout = context.Slot(step.results[result]).layout;
  if (result == 0 || !layout || !IsNarrow(layout->dtype)) return false;
  if (std::ranges::none_of(kNorms, [&](std::string_view op) { return IsOverloadOf(step.op, op); }))
    return false;
  bool has_wider = false;
  step.ForEachOperand([&](SlotId slot) {
    const auto& operand = context.Slot(slot).layout;
    has_wider = has_wider || (operand && operand->dtype == DType::kF32);
  });
  return has_wider;
}

}  // namespace

Result<Binding> BindAllocatingCall(const PlanStep& step, StepId index, BindContext& context) {
  const PlanStep called = step.mutates ? WithTensorOverload(step) : step;
  STRATA_TRY(const c10::OperatorHandle op, FindOp(called.op));
  STRATA_TRY(OperatorStack call, OperatorStack::Bind(called, op, context));
  bool is_fixed = true;
  step.ForEachOperand([&](SlotId slot) { is_fixed = is_fixed && context.IsFixed(slot); });
  auto bound = std::make_unique<AllocatingCall>(step, std::move(call), !is_fixed);
  const PlanOptions& options = context.plan().options;
  const bool can_place = !AllocatesByAddress(step.op);
  for (size_t i = 0; i < step.results.size(); ++i) {
    const SlotId slot = step.results[i];
    if (!slot.valid()) continue;
    const bool is_own = context.OwnerOf(slot) == slot && !step.mutates && !step.is_view;
    if (!is_own || !context.Slot(slot).layout || IsWiderStatistic(step, i, context)) {
      context.MakeDynamic(slot);
      // Of several results, one could be allocated where another is live.
      if (can_place && is_own && step.results.size() == 1 && context.CanUseArena(slot))
        bound->UseArena(slot);
    } else if (can_place && options.static_memory && options.arena_results &&
               !context.IsSeparate(slot)) {
      context.Place(slot, index);
      bound->Preallocate(slot);
    } else {
      StaticStorage& storage = context.StorageOf(slot);
      storage = {StaticStorage::Kind::kAdopted, context.Slot(slot).layout->storage_bytes(), slot};
      context.state().TensorAt(slot) =
          TensorOver(EmptyStorage(storage.bytes), *context.Slot(slot).layout);
    }
    const bool is_adopted = !context.state().is_dynamic[slot];
    if (is_adopted && step.results.size() == 1 && TraitsOf(step.op).collective) {
      STRATA_TRY(const c10::OperatorHandle wait, FindOp("_c10d_functional.wait_tensor.default"));
      bound->WaitBy(wait);
    }
  }
  return Bound(std::move(bound));
}

}  // namespace strata
