#include "runtime/exec/static/transfer.h"

#include <memory>
#include <utility>

#include "passes/memory/offloadable.h"
#include "runtime/aten/literals.h"
#include "runtime/offload/host_memory.h"

namespace strata {
namespace {

using at::Tensor;

/// Starts a copy from slot to slot.
class StartTransfer : public Step {
 public:
  StartTransfer(SlotId from, SlotId to) : from_(from), to_(to) {}

  void Run(StaticState& state) override { Copy(state, state.TensorAt(from_), state.TensorAt(to_)); }

 protected:
  SlotId from() const { return from_; }
  SlotId to() const { return to_; }

  /// REQUIRES: tensors of the same layout, without gaps.
  void Copy(StaticState& state, const Tensor& from, const Tensor& to) const {
    state.tickets[to_] =
        state.transfers->Start(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  }

 private:
  SlotId from_, to_;
};

/// The same for values of data-dependent size: memory for the copy is allocated first.
class StartDynamicTransfer final : public StartTransfer {
 public:
  StartDynamicTransfer(SlotId from, SlotId to, bool to_host, bool uses_arena)
      : StartTransfer(from, to), to_host_(to_host), uses_arena_(uses_arena) {}

  void Run(StaticState& state) override {
    const Tensor from = state.TensorAt(this->from()).contiguous();
    state.TensorAt(to()) = NewTensor(state, LayoutOf(from));
    Copy(state, from, state.TensorAt(to()));
    // A copy that was made to be contiguous goes with this call.
    if (!from.is_same(state.TensorAt(this->from()))) state.AwaitTransfers();
  }
  bool UsesArena(SlotId slot) const override { return uses_arena_ && slot == to(); }

 private:
  static PlanLayout LayoutOf(const Tensor& tensor) {
    return {.dtype = ToDType(tensor.scalar_type()),
            .sizes = tensor.sizes().vec(),
            .strides = tensor.strides().vec(),
            .offset = 0};
  }

  Tensor NewTensor(StaticState& state, const PlanLayout& layout) const {
    if (!to_host_) return state.NewDynamicTensor(to(), layout);
    const int64_t bytes = layout.storage_bytes();
    std::shared_ptr<void> memory = AllocateHostMemory(bytes, state.plan.options.offload_folder);
    void* const address = memory.get();
    c10::DataPtr data(
        address, new std::shared_ptr<void>(std::move(memory)),
        [](void* held) { delete static_cast<std::shared_ptr<void>*>(held); },
        c10::Device(c10::kCPU));
    return TensorOver({c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), std::move(data),
                       /*allocator=*/nullptr, /*resizable=*/false},
                      layout);
  }

  bool to_host_, uses_arena_;
};

class AwaitTransfer final : public Step {
 public:
  AwaitTransfer(SlotId from, SlotId owner, SlotId to, bool is_dynamic)
      : from_(from), owner_(owner), to_(to), is_dynamic_(is_dynamic) {}

  void Run(StaticState& state) override {
    if (state.transfers != nullptr) state.transfers->Wait(state.tickets[owner_]);
    if (is_dynamic_) state.TensorAt(to_) = state.TensorAt(from_);
  }

 private:
  SlotId from_, owner_, to_;
  bool is_dynamic_;
};

Binding BindTransferWait(const PlanStep& step, BindContext& context) {
  const SlotId from = step.args[0].slot, to = step.results[0];
  const bool is_fixed = context.IsFixed(from);
  if (is_fixed) {
    context.state().TensorAt(to) = context.TensorAt(from);
  } else {
    context.MakeDynamic(to);
  }
  return Bound(std::make_unique<AwaitTransfer>(from, context.OwnerOf(from), to, !is_fixed));
}

}  // namespace

Result<Binding> BindTransfer(const PlanStep& step, StepId index, BindContext& context) {
  const bool to_host = step.op == kOffloadOp;
  if (!to_host && step.op != kReloadOp && step.op != kTransferWaitOp) return Binding();
  StaticState& state = context.state();
  if (state.transfers == nullptr) {
    state.transfers = std::make_unique<TransferThread>();
    state.tickets.resize(context.plan().slots.size());
  }
  if (step.args.empty() || step.args[0].kind != ArgKind::kValue || step.results.size() != 1 ||
      !step.results[0].valid()) {
    return Error(ErrorCode::kUnsupported, "a transfer has an operand and a result that is read");
  }
  if (step.op == kTransferWaitOp) return BindTransferWait(step, context);
  const SlotId from = step.args[0].slot, to = step.results[0];
  const bool is_fixed =
      context.plan().options.static_memory && context.IsFixed(from) && context.HaveLayouts(step) &&
      context.Slot(from).layout &&
      context.Slot(from).layout->storage_bytes() ==
          context.Slot(from).layout->num_elements() * ByteSize(context.Slot(from).layout->dtype) &&
      context.Slot(from).layout->strides == context.Slot(to).layout->strides;
  if (is_fixed) {
    if (to_host && !context.assignment().is_output(to)) {
      context.PlaceOnHost(to, index);
    } else {
      context.Place(to, index);
    }
    return Bound(std::make_unique<StartTransfer>(from, to));
  }
  context.MakeDynamic(to);
  const bool uses_arena = !to_host && context.CanUseArena(to);
  return Bound(std::make_unique<StartDynamicTransfer>(from, to, to_host, uses_arena));
}

}  // namespace strata
