#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "runtime/exec/static/static_program.h"
#include "runtime/exec/static/step.h"
#include "runtime/offload/transfer_thread.h"
#include "runtime/plan/memory/dynamic_arena.h"

namespace strata {

/// A storage of the program.
struct StaticStorage {
  enum class Kind : uint8_t {
    kNone,
    kInput,
    kConstant,
    kBlock,
    kAdopted,
    kOutput,
    kDynamic,
    kHost
  };
  Kind kind = Kind::kNone;
  int64_t bytes = 0;
  int64_t offset = 0;               ///< kBlock, kOutput: in the block; kHost: in the host's
  std::vector<SlotId> slots;        ///< with tensors over it, views included
  std::vector<at::Tensor> aliases;  ///< further tensors over it, each known to one step
  /// An argument of a step that lies in it.
  struct Use {
    Step* step = nullptr;
    size_t argument = 0;
    c10::TensorImpl* tensor = nullptr;
  };
  std::vector<Use> uses;
  size_t references = 0;  ///< kOutput: the program's, to its StorageImpl

  StaticStorage() = default;
  StaticStorage(Kind k, int64_t b, SlotId owner) : kind(k), bytes(b), slots{owner} {}
};

/// A storage of that size that has no memory yet.
c10::Storage EmptyStorage(int64_t bytes);

/// A tensor of that layout over a storage.
at::Tensor TensorOver(const c10::Storage& storage, const PlanLayout& layout);

/// Whether the tensor has these sizes and strides. Strides of size-1 dimensions are arbitrary.
bool HasLayout(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides);

/// An input, and the memory that it was bound to last.
struct StaticInput {
  SlotId slot;
  c10::StorageImpl* own = nullptr;  ///< the program's, pointed to the input; null: dynamic
  const void* data = nullptr;
  size_t bytes = 0;
  int64_t offset = 0;
};

/// Tensors, storages and steps of a static program.
struct StaticState {
  explicit StaticState(const Plan& p)
      : plan(p),
        steps(p.steps.size()),
        tensors(p.slots.size()),
        is_dynamic(p.slots.size(), false),
        numbers(p.slots.size()),
        storages(p.slots.size()),
        homes(p.slots.size()) {
    for (const SlotId slot : IdsOf(p.slots))
      homes[slot] = slot;
  }

  const Plan& plan;
  IdVector<StepId, StaticStep> steps;
  std::vector<StepId> live_steps;  ///< those with work in a run
  IdVector<SlotId, at::Tensor> tensors;
  IdVector<SlotId, bool> is_dynamic;         ///< its tensor changes from run to run
  SlotSizes numbers;                         ///< data-dependent sizes of the run
  IdVector<SlotId, StaticStorage> storages;  ///< by slot that owns one
  IdVector<SlotId, SlotId> homes;   ///< by slot that owns a storage: itself, or a donated input
  std::vector<StaticInput> inputs;  ///< as the plan's
  std::unordered_map<const c10::StorageImpl*, size_t> input_of;  ///< by StaticInput::own
  MemoryBlock block;                  ///< allocated at the first run; outputs that are held keep it
  void* scratch = nullptr;            ///< instead of a block of its own
  int64_t block_bytes = 0;            ///< that a run needs
  int64_t hoisted_bytes = 0;          ///< of results that are computed when the plan is bound
  bool can_borrow = false;            ///< no output in it outlives a run
  std::vector<SlotId> outputs;        ///< owners of storages of kind kOutput
  TransientMemory transient;          ///< that allocators provide during a run
  TransientMemory transient_outputs;  ///< the part of it that outlives the run
  DynamicArena dynamic_arena;
  std::shared_ptr<void> host_block;           ///< of offloaded values; allocated at the first run
  int64_t host_bytes = 0;                     ///< of it
  std::unique_ptr<TransferThread> transfers;  ///< null: the plan offloads nothing
  IdVector<SlotId, TransferThread::Ticket> tickets;  ///< by owner of a storage: the copy to it
  torch::jit::Stack stack;
  std::vector<at::Tensor> shown;  ///< to the observer
  StepId current_step{0};

  at::Tensor& TensorAt(SlotId slot) { return tensors[slot]; }
  StaticStorage& StorageOf(SlotId slot) { return storages[homes[plan.slots[slot].storage]]; }
  /// Moves all tensors over the storage of `owner` to another storage, and updates addresses.
  void SetStorage(SlotId owner, const c10::Storage& storage);

  /// Sets the addresses of the steps that use the storage.
  void UpdateAddresses(SlotId owner);
  /// Points the storages of inputs to the memory of these, without owning it.
  Status BindInputs(std::span<const at::Tensor> given);
  Status MoveInput(SlotId slot, int64_t offset);
  void ReleaseDynamicInputs();
  /// Keeps outputs of the last run that the caller holds: this run gets a new block.
  void KeepHeldOutputs();
  bool HasHeldOutputs();
  /// Points the storages of kinds kBlock and kOutput into the block.
  void PlaceStorages();
  /// Allocates the block, unless there is one.
  void EnsureBlock();
  void UseBlock(MemoryBlock memory);
  /// The same for the memory of offloaded values.
  /// Errors (kIo): no file for it in PlanOptions::offload_folder.
  Status EnsureHostBlock();
  void LetGoOfHostBlock();
  /// Until then, memory that copies read and write must stay as it is.
  void AwaitTransfers() const;
  /// As StaticProgram::Borrow.
  void Borrow(const ScratchMemory& lent);
  /// Releases the block; outputs that the caller holds keep it.
  void LetGoOfBlock();
  void RunStep(StepId index, ExecutionObserver* observer);
  /// The layout for the data-dependent sizes of this run.
  PlanLayout LayoutNow(const DynamicLayout& layout) const;
  /// The argument for a dynamic slot: its number or its tensor.
  c10::IValue Dynamic(SlotId slot);
  char* Base() const {
    return static_cast<char*>(scratch != nullptr ? scratch : block.memory->get());
  }
  /// Whether a tensor lies in the block, or in the scratch memory instead of it.
  bool IsInBlock(const at::Tensor& tensor) const;
  /// Memory for a value of data-dependent size; null: there is no room, an allocator must give it.
  void* AllocateInArena(SlotId slot, int64_t bytes);
  int64_t BytesNow(SlotId slot) const;
  at::Tensor NewDynamicTensor(SlotId slot, const PlanLayout& layout);
  void Show(const PlanStep& step, ExecutionObserver& observer);
  /// Outputs as new tensor objects, over the memory of the caller's inputs where an output is one.
  std::vector<at::Tensor> TakeOutputs(std::span<const at::Tensor> given);
  at::Tensor OutputAt(SlotId slot, std::span<const at::Tensor> given);
  void Release(SlotId owner);
  void TakeStorage(SlotId owner);  ///< allocates what was released, or is not there yet
};

/// Calls fn(slot, result) for the tensors that a call of `step` left on the stack, as far as the
/// plan has slots for them.
template <class Fn>
void ForEachResult(const torch::jit::Stack& stack, const PlanStep& step, Fn&& fn) {
  size_t index = 0;
  const auto next = [&](const at::Tensor& result) {
    const SlotId slot = index < step.results.size() ? step.results[index] : SlotId();
    ++index;
    if (slot.valid() && result.defined()) fn(slot, result);
  };
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& element : value.toTensorVector())
        next(element);
    } else {
      next(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
}

}  // namespace strata
