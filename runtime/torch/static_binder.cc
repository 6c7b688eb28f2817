#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/compile/pointwise.h"
#include "runtime/codegen/schedule.h"
#include "runtime/plan/memory.h"
#include "runtime/plan/places.h"
#include "runtime/torch/literals.h"
#include "runtime/torch/out_variants.h"
#include "runtime/torch/own_matmul.h"
#include "runtime/torch/own_norm.h"
#include "runtime/torch/static_state.h"
#include "runtime/torch/substitutes.h"

namespace strata {
namespace {

using at::Tensor;
using StepKind = StaticStep::Kind;
using StorageKind = StaticStorage::Kind;

/// Elements that are worth waking another thread for; ATen's at::internal::GRAIN_SIZE.
constexpr int64_t kGrainElements = 32768;
/// An output of this size may lie in memory that is only lent.
constexpr int64_t kNumberBytes = 64;

}  // namespace

class StaticBinder {
 public:
  StaticBinder(const Plan& plan, const Constants& constants, const KernelLibrary* kernels,
               const ScratchMemory& scratch)
      : plan_(plan),
        constants_(constants),
        kernels_(kernels),
        scratch_(scratch),
        state_(std::make_unique<StaticProgram::State>(plan)),
        places_(plan) {}

  Result<std::unique_ptr<StaticProgram>> Run() {
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
    CountPassing();
    PlanReleases();
    for (size_t i = 0; i < state_->steps.size(); ++i) {
      const StaticStep& step = state_->steps[i];
      if (step.kind != StepKind::kNothing || !step.releases.empty() || !step.drops.empty())
        state_->live_steps.push_back(i);
    }
    return std::unique_ptr<StaticProgram>(new StaticProgram(std::move(state_)));
  }

 private:
  const PlanSlot& Slot(int32_t slot) const { return plan_.slots[static_cast<size_t>(slot)]; }
  int32_t OwnerOf(int32_t slot) const { return Slot(slot).storage; }
  StaticStorage& StorageOf(int32_t slot) { return state_->StorageOf(slot); }
  bool IsFixed(int32_t slot) {
    return Slot(slot).layout && state_->TensorAt(slot).defined() &&
           !state_->is_dynamic[static_cast<size_t>(slot)];
  }
  void BindInputs() {
    for (const Plan::Input& input : plan_.inputs) {
      const std::optional<PlanLayout>& layout = Slot(input.slot).layout;
      if (!layout) {
        MakeDynamic(input.slot);
        continue;
      }
      const int64_t bytes = layout->storage_bytes();
      StorageOf(input.slot) = {StorageKind::kInput, bytes, input.slot};
      state_->TensorAt(input.slot) = TensorOver(EmptyStorage(bytes), *layout);
    }
  }

  Status BindConstants() {
    for (const Plan::Constant& constant : plan_.constants) {
      const auto known =
          std::ranges::find(constants_, constant.path, &Constants::value_type::first);
      if (known == constants_.end()) {
        return Error(ErrorCode::kNotFound, "graph {} cannot be executed: no constant {}",
                     plan_.graph, constant.path);
      }
      StorageOf(constant.slot).kind = StorageKind::kConstant;
      state_->TensorAt(constant.slot) = known->second;
      is_constant_.insert(constant.slot);
    }
    return Ok();
  }

  Status BindOne(int32_t index) {
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

  bool HaveLayouts(const PlanStep& step) const {
    return std::ranges::all_of(step.results, [&](int32_t slot) {
      return slot >= 0 && Slot(slot).layout && OwnerOf(slot) == slot;
    });
  }

  /// Fills arguments that are there for all runs; the others stay in `bound.dynamic_*`.
  void FillStack(const BoundStep& filled, StaticStep& bound) {
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

  /// Runs a step now, on the tensors that are there.
  Result<torch::jit::Stack> CallNow(const PlanStep& step) {
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

  template <class Fn>
  static void ForEachResult(const torch::jit::Stack& stack, const PlanStep& step, Fn&& fn) {
    size_t index = 0;
    const auto next = [&](const Tensor& tensor) {
      if (index < step.results.size() && step.results[index] >= 0 && tensor.defined()) {
        fn(step.results[index], tensor);
      }
      ++index;
    };
    for (const c10::IValue& value : stack) {
      if (value.isTensorList()) {
        for (const Tensor& element : value.toTensorVector())
          next(element);
      } else {
        next(value.isTensor() ? value.toTensor() : Tensor());
      }
    }
  }

  Status FoldView(const PlanStep& step) {
    STRATA_TRY(const torch::jit::Stack stack, CallNow(step));
    ForEachResult(stack, step, [&](int32_t slot, const Tensor& view) {
      state_->TensorAt(slot) = view;
      StorageOf(slot).slots.push_back(slot);
    });
    return Ok();
  }

  /// Depends on nothing but constants, and nobody writes to what it makes.
  bool CanHoist(const PlanStep& step) {
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

  Status Hoist(const PlanStep& step) {
    STRATA_TRY(const torch::jit::Stack stack, CallNow(step));
    ForEachResult(stack, step, [&](int32_t slot, const Tensor& result) {
      state_->TensorAt(slot) = result;
      StorageOf(slot).kind = StorageKind::kConstant;
      is_constant_.insert(slot);
    });
    return Ok();
  }

  /// Gives a result a tensor over memory that is placed later.
  void Place(int32_t slot, int32_t step) {
    StaticStorage& storage = StorageOf(slot);
    storage = {places_.is_output(slot) ? StorageKind::kOutput : StorageKind::kBlock,
               Slot(slot).layout->storage_bytes(), slot};
    state_->TensorAt(slot) = TensorOver(EmptyStorage(storage.bytes), *Slot(slot).layout);
    places_.Add(slot, step);
  }

  /// Lets the result live where an operand lies that dies with this step.
  void Share(int32_t slot, int32_t step, const std::function<bool(int32_t operand)>& may_share) {
    if (plan_.options.in_place) places_.Share(slot, step, may_share);
  }

  /// A call that writes to memory of ours. False when the operator has none.
  Result<bool> BindInto(const PlanStep& step, StaticStep& bound) {
    if (step.results.size() == 1) {
      STRATA_TRY(const bool is_simple, BindFillOrCopy(step, bound));
      if (is_simple) return true;
      STRATA_TRY(const bool is_embedding, BindEmbeddingBackward(step, bound));
      if (is_embedding) return true;
      if (BindMatmul(step, bound) || BindNorm(step, bound) || BindJoin(step, bound)) return true;
    }
    const PlanStep called = WithTensorOverload(step);
    STRATA_TRY(const c10::OperatorHandle op, FindOp(called.op));
    const std::optional<c10::OperatorHandle> out = OutVariantOf(op);
    if (!out || step.results.size() != op.schema().returns().size()) return false;
    STRATA_TRY(const BoundStep filled, BindStep(called, op));
    FillStack(filled, bound);
    const FusibleOp* fusible = FindFusible(step.op);
    for (const int32_t slot : step.results) {
      Place(slot, bound.index);
      if (fusible != nullptr && fusible->kind == FusionKind::kPointwise) {
        Share(slot, bound.index, [](int32_t) { return true; });
      } else if (ReadsRowsFirst(step)) {
        Share(slot, bound.index, [&](int32_t operand) { return operand == step.args[0].slot; });
      }
      bound.stack.emplace_back(state_->TensorAt(slot));
    }
    bound.kind = StepKind::kCall;
    bound.op = *out;
    return true;
  }

  /// The gradient of an embedding has no out-variant. It is a sum over tokens in their order, as
  /// index_add_ makes it into rows of zeros.
  Result<bool> BindEmbeddingBackward(const PlanStep& step, StaticStep& bound) {
    if (step.op != "aten.embedding_dense_backward.default" || step.args.size() != 5 ||
        step.args[3].integer >= 0 || step.args[4].integer != 0) {
      return false;
    }
    const Tensor& gradient = state_->TensorAt(step.args[0].slot);
    const Tensor& tokens = state_->TensorAt(step.args[1].slot);
    const int32_t slot = step.results[0];
    const int64_t width = gradient.size(-1);
    // In bf16 the two round at different places.
    if (gradient.scalar_type() != at::kFloat || !gradient.is_contiguous() ||
        !tokens.is_contiguous() || width == 0) {
      return false;
    }
    Place(slot, bound.index);
    const auto flat = [&](int32_t operand, std::vector<int64_t> sizes,
                          std::vector<int64_t> strides) {
      const Tensor& tensor = state_->TensorAt(operand);
      Tensor view = TensorOver(tensor.storage(), {.dtype = ToDType(tensor.scalar_type()),
                                                  .sizes = std::move(sizes),
                                                  .strides = std::move(strides),
                                                  .offset = tensor.storage_offset()});
      StorageOf(operand).others.push_back(view);
      return view;
    };
    const Tensor rows = flat(step.args[0].slot, {tokens.numel(), width}, {width, 1});
    const Tensor index = flat(step.args[1].slot, {tokens.numel()}, {1});
    STRATA_TRY(bound.op, FindOp("aten.index_add_.default"));
    bound.kind = StepKind::kCall;
    bound.zero_first = state_->TensorAt(slot);
    bound.stack = {state_->TensorAt(slot), int64_t{0}, index, rows, int64_t{1}};
    bound.is_plain = IsPlain(gradient) && IsPlain(tokens);
    return true;
  }

  bool BindMatmul(const PlanStep& step, StaticStep& bound) {
    if (!plan_.options.own_matmuls || step.op != "aten.mm.default") return false;
    const int32_t slot = step.results[0];
    const Tensor& a = state_->TensorAt(step.args[0].slot);
    const Tensor& b = state_->TensorAt(step.args[1].slot);
    if (!IsPlain(a) || !IsPlain(b)) return false;
    const PlanLayout& layout = *Slot(slot).layout;
    const auto matmul =
        MatmulWithAtensBits(a, b, TensorOver(EmptyStorage(layout.storage_bytes()), layout));
    if (!matmul) return false;
    Place(slot, bound.index);
    bound.kind = StepKind::kMatmul;
    bound.matmul = *matmul;
    AddArguments(bound, {step.args[0].slot, step.args[1].slot, slot});
    return true;
  }

  void AddArguments(StaticStep& bound, const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots) {
      StorageOf(slot).addresses.push_back(
          {.step = static_cast<size_t>(bound.index), .argument = bound.arguments.size()});
      bound.arguments.push_back(state_->TensorAt(slot).unsafeGetTensorImpl());
      bound.addresses.push_back(nullptr);
    }
  }

  bool BindNorm(const PlanStep& step, StaticStep& bound) {
    if (!plan_.options.own_norms || step.op != "aten.linalg_vector_norm.default" ||
        !step.kwargs.empty()) {
      return false;
    }
    const auto is_two = [](const PlanArg& order) {
      return (order.kind == ArgKind::kFloat && order.real == 2.0) ||
             (order.kind == ArgKind::kInt && order.integer == 2);
    };
    if (step.args.size() > 1 && !is_two(step.args[1])) return false;
    if (step.args.size() > 2 && step.args[2].kind != ArgKind::kNone) return false;
    const Tensor& tensor = state_->TensorAt(step.args[0].slot);
    if (tensor.scalar_type() != at::kFloat || !IsPlain(tensor) || !tensor.is_contiguous() ||
        !NormHasAtensBits(tensor.numel())) {
      return false;
    }
    const int32_t slot = step.results[0];
    Place(slot, bound.index);
    bound.kind = StepKind::kNorm;
    bound.units = tensor.numel();
    AddArguments(bound, {step.args[0].slot, slot});
    return true;
  }

  /// A stack along the first dimension: one operand's memory after the other's.
  bool BindJoin(const PlanStep& step, StaticStep& bound) {
    if (step.op != "aten.stack.default" || !step.kwargs.empty()) return false;
    if (step.args.size() > 1 && (step.args[1].kind != ArgKind::kInt || step.args[1].integer != 0))
      return false;
    const int32_t slot = step.results[0];
    std::vector<int32_t> slots;
    for (const PlanArg& element : step.args[0].elements) {
      const Tensor& operand = state_->TensorAt(element.slot);
      if (!IsPlain(operand) || !operand.is_contiguous() ||
          ToDType(operand.scalar_type()) != Slot(slot).layout->dtype) {
        return false;
      }
      bound.units = static_cast<int64_t>(operand.nbytes());
      slots.push_back(element.slot);
    }
    if (slots.empty() || !TensorOver(EmptyStorage(0), *Slot(slot).layout).is_contiguous())
      return false;
    Place(slot, bound.index);
    slots.push_back(slot);
    bound.kind = StepKind::kJoin;
    AddArguments(bound, slots);
    return true;
  }

  Result<bool> BindFillOrCopy(const PlanStep& step, StaticStep& bound) {
    const int32_t slot = step.results[0];
    if (const std::optional<Fill> fill = FillOf(step)) {
      Place(slot, bound.index);
      if (!fill->number) return true;
      STRATA_TRY(bound.op, FindOp("aten.fill_.Scalar"));
      bound.kind = StepKind::kCall;
      bound.stack = {state_->TensorAt(slot), *fill->number};
      bound.is_plain = true;
      return true;
    }
    if (!IsCopy(step)) return false;
    const Tensor& source = state_->TensorAt(step.args[0].slot);
    const PlanLayout& layout = *Slot(slot).layout;
    Place(slot, bound.index);
    Tensor target = state_->TensorAt(slot);
    if (source.sizes() != target.sizes()) {
      // A reshape that copies: contiguous, and written under the shape of what is copied.
      PlanLayout as_source{.dtype = layout.dtype,
                           .sizes = source.sizes().vec(),
                           .strides = {},
                           .offset = layout.offset};
      int64_t stride = 1;
      for (size_t dim = as_source.sizes.size(); dim-- > 0;) {
        as_source.strides.insert(as_source.strides.begin(), stride);
        stride *= as_source.sizes[dim];
      }
      target = TensorOver(target.storage(), as_source);
      StorageOf(slot).others.push_back(target);
    }
    STRATA_TRY(bound.op, FindOp("aten.copy_.default"));
    bound.kind = StepKind::kCall;
    bound.stack = {target, source, false};
    bound.is_plain = IsPlain(source);
    return true;
  }

  /// A call of the operator as it is.
  Status BindCall(const PlanStep& step, StaticStep& bound, bool is_fixed) {
    const PlanStep called = step.mutates ? WithTensorOverload(step) : step;
    STRATA_TRY(bound.op, FindOp(called.op));
    STRATA_TRY(const BoundStep filled, BindStep(called, *bound.op));
    FillStack(filled, bound);
    bound.kind = StepKind::kAdopt;

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
      const bool is_fresh = OwnerOf(slot) == slot && Slot(slot).layout && !step.mutates;
      if (!is_fresh) {
        MakeDynamic(slot);
        continue;
      }
      if (is_fixed && plan_.options.static_memory && plan_.options.place_results) {
        Place(slot, bound.index);
        bound.placed.push_back(slot);
        continue;
      }
      StorageOf(slot) = {StorageKind::kAdopted, Slot(slot).layout->storage_bytes(), slot};
      state_->TensorAt(slot) = TensorOver(EmptyStorage(StorageOf(slot).bytes), *Slot(slot).layout);
    }
    return Ok();
  }

  /// What it is, the run tells. A view of fixed memory that is not folded is one, too.
  void MakeDynamic(int32_t slot) {
    if (OwnerOf(slot) == slot) StorageOf(slot).kind = StorageKind::kDynamic;
    state_->is_dynamic[static_cast<size_t>(slot)] = true;
  }

  int32_t OperandWrittenAs(const PlanStep& step, int32_t result) {
    int32_t found = -1;
    step.ForEachOperand([&](int32_t operand) {
      if (found < 0 && OwnerOf(operand) == OwnerOf(result) &&
          Slot(operand).layout == Slot(result).layout) {
        found = operand;
      }
    });
    return found;
  }

  Status BindKernel(const PlanStep& step, StaticStep& bound) {
    const Kernel& kernel = plan_.kernels[static_cast<size_t>(step.kernel)];
    if (kernels_ == nullptr) return Error(ErrorCode::kInternal, "its kernel was not built");
    const Schedule schedule = MakeSchedule(kernel);
    bound.kind = StepKind::kKernel;
    bound.kernel = step.kernel;
    bound.function = kernels_->function(static_cast<size_t>(step.kernel));
    bound.open_numbers = kernel.open_numbers();
    bound.units = schedule.units;
    bound.grain =
        std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, schedule.unit_elements));
    std::vector<int32_t> slots(static_cast<size_t>(kernel.num_arguments), -1);
    for (size_t i = 0; i < step.args.size(); ++i) {
      const int32_t slot = step.args[i].slot;
      if (!IsFixed(slot) || state_->TensorAt(slot).is_conj() || state_->TensorAt(slot).is_neg()) {
        return Error(ErrorCode::kUnsupported, "reads a value of unknown layout");
      }
      slots[i] = slot;
    }
    for (size_t i = 0; i < step.results.size(); ++i) {
      const int32_t slot = step.results[i];
      const int32_t argument = kernel.result_arguments[i];
      if (argument < kernel.num_inputs) {
        if (slot >= 0) {
          state_->TensorAt(slot) = state_->TensorAt(step.args[static_cast<size_t>(argument)].slot);
        }
        continue;
      }
      if (slot < 0 || !Slot(slot).layout) {
        return Error(ErrorCode::kUnsupported, "has a result of unknown layout");
      }
      Place(slot, bound.index);
      Share(slot, bound.index, [&](int32_t operand) {
        for (size_t input = 0; input < step.args.size(); ++input) {
          if (step.args[input].slot == operand &&
              !kernel.IsElementwise(static_cast<int32_t>(input), static_cast<int32_t>(i))) {
            return false;
          }
        }
        return true;
      });
      slots[static_cast<size_t>(argument)] = slot;
    }
    AddArguments(bound, slots);
    return Ok();
  }

  void PlaceMemory() {
    const Places::Block block = places_.Assign();
    bool has_outputs = false;
    for (size_t owner = 0; owner < state_->storages.size(); ++owner) {
      StaticStorage& storage = state_->storages[owner];
      if (storage.kind != StorageKind::kBlock && storage.kind != StorageKind::kOutput) continue;
      storage.offset = block.offsets[owner];
      // A number is copied when it is handed out.
      has_outputs =
          has_outputs || (storage.kind == StorageKind::kOutput && storage.bytes > kNumberBytes);
    }
    state_->block_bytes = block.bytes;
    if (!has_outputs && scratch_.owner != nullptr && block.bytes <= scratch_.bytes) {
      state_->scratch = scratch_.address;
      // Keeps the other program's block.
      state_->block = std::static_pointer_cast<c10::DataPtr>(scratch_.owner);
    } else {
      state_->block = std::make_shared<c10::DataPtr>(
          c10::GetCPUAllocator()->allocate(static_cast<size_t>(block.bytes)));
      state_->planned.held = block.bytes;
    }
    state_->PlaceStorages();
  }

  /// What operators return, while it lives.
  void CountPassing() {
    const auto end = static_cast<int32_t>(plan_.steps.size());
    std::vector<MemoryRequest> requests;
    for (const StaticStep& step : state_->steps) {
      if (step.kind != StepKind::kAdopt) continue;
      for (const int32_t slot : plan_.steps[static_cast<size_t>(step.index)].results) {
        if (slot < 0 || StorageOf(slot).kind != StorageKind::kAdopted || OwnerOf(slot) != slot)
          continue;
        requests.push_back({.bytes = StorageOf(slot).bytes,
                            .first = step.index,
                            .last = std::min(places_.last_use(slot), end)});
      }
    }
    state_->planned.passing = PlanMemory(requests).live_bytes;
  }

  void PlanReleases() {
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
          last != Places::kForever) {
        state_->steps[static_cast<size_t>(last)].releases.push_back(static_cast<int32_t>(owner));
      }
    }
  }

  const Plan& plan_;
  const Constants& constants_;
  const KernelLibrary* kernels_;
  const ScratchMemory& scratch_;
  std::unique_ptr<StaticProgram::State> state_;
  Places places_;
  std::set<int32_t> is_constant_;  // owners
};

Result<std::unique_ptr<StaticProgram>> StaticProgram::Bind(const Plan& plan,
                                                           const Constants& constants,
                                                           const KernelLibrary* kernels,
                                                           const ScratchMemory& scratch) {
  return StaticBinder(plan, constants, kernels, scratch).Run();
}

}  // namespace strata
