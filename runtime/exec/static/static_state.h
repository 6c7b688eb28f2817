#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "runtime/exec/static/arena_allocations.h"
#include "runtime/exec/static/static_program.h"
#include "runtime/plan/memory/dynamic_arena.h"

namespace strata {

/// One step, bound. What each run reads of a step that only computes comes first: a program has
/// more steps than a cache has room for.
struct alignas(64) StaticStep {
  enum class Kind : uint8_t {
    kNothing,  ///< done when the plan was bound: a view, a constant, memory without content
    kCall,     ///< writes to tensors that are there: out-variants and in-place operators
    kAdopt,    ///< results' storages are taken over, or results themselves where they are dynamic
    kKernel,
    kDynamicKernel,  ///< of tensors that are others in each run, perhaps of sizes that a run reads
    kJoin,           ///< operands, one after the other
  };

  Kind kind = Kind::kNothing;
  bool is_plain = false;  ///< all tensors are plain CPU ones: dispatch needs no look at them
  bool has_dynamic_results = false;  ///< of sizes that only a run tells
  bool lets_go = false;              ///< `releases` or `drops` are not empty
  int32_t index = -1;                ///< of the plan's step
  // kKernel, kJoin
  std::vector<void*> addresses;  ///< of the arguments' elements, as long as they stay
  KernelLibrary::Function function = nullptr;
  /// Of a kernel; bytes of each that is joined.
  int64_t units = 0;
  int64_t grain = 0;                        ///< units that are worth a thread
  std::vector<int64_t> kernel_numbers;      ///< kKernel, kDynamicKernel: of Kernel
  size_t num_unit_dims = 0;                 ///< kDynamicKernel: leading ones, which count units
  std::vector<c10::TensorImpl*> arguments;  ///< operands, then results
  int32_t kernel = -1;
  // kCall, kAdopt
  std::optional<c10::OperatorHandle> op;
  at::Tensor zero_first;                    ///< what the call adds to
  torch::jit::Stack stack;                  ///< all arguments
  std::vector<TensorSlot> dynamic_tensors;  ///< to fill in at run time
  std::vector<ListSlots> dynamic_lists;
  std::vector<NumberSlots> dynamic_numbers;
  // kAdopt
  std::vector<int32_t> placed;  ///< slots whose memory is in the block: what is allocated for them
  int32_t open_place = -1;      ///< a slot for which the run tells whether its memory is there
  bool has_dynamic_operands = false;  ///< others in each run, and so is what it allocates
  AllocationOrder allocations;
  /// Slots whose taken-over storage goes after this step.
  std::vector<int32_t> releases;
  std::vector<int32_t> drops;  ///< dynamic slots that die with this step

  /// Brings near what a run reads of it.
  void Fetch() const {
    const char* const first = reinterpret_cast<const char*>(this);
    for (size_t line = 0; line < sizeof(StaticStep) && line < 256; line += 64)
      __builtin_prefetch(first + line);
  }
};

/// What a storage of the program is.
struct StaticStorage {
  enum class Kind : uint8_t { kNone, kInput, kConstant, kBlock, kAdopted, kOutput, kDynamic };
  Kind kind = Kind::kNone;
  int64_t bytes = 0;
  int64_t offset = 0;              ///< kBlock, kOutput: in the block
  std::vector<int32_t> slots;      ///< with tensors over it, views included
  std::vector<at::Tensor> others;  ///< over it, known to one step
  struct Address {
    size_t step = 0, argument = 0;
  };
  std::vector<Address> addresses;  ///< in steps, of tensors over it
  size_t references = 0;           ///< kOutput: ours, to its StorageImpl

  StaticStorage() = default;
  StaticStorage(Kind k, int64_t b, int32_t owner) : kind(k), bytes(b), slots{owner} {}
};

/// Units of a kernel, of so many elements each, that are worth waking another thread for.
int64_t GrainOf(int64_t unit_elements);

/// A storage without memory, of that size: where memory will be.
c10::Storage EmptyStorage(int64_t bytes);

/// A tensor of that layout over a storage.
at::Tensor TensorOver(const c10::Storage& storage, const PlanLayout& layout);

/// Whether the elements lie as these sizes and strides say. Along sizes of 1 a stride leads
/// nowhere, and operators give them any.
bool LiesAs(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides);

/// An input, and where it was when it was bound last.
struct StaticInput {
  int32_t slot = -1;
  c10::StorageImpl* own = nullptr;  ///< ours, which is pointed to it; null: dynamic
  const void* data = nullptr;
  size_t bytes = 0;
  int64_t offset = 0;
};

struct StaticProgram::State {
  explicit State(const Plan& p)
      : plan(p),
        tensors(p.slots.size()),
        is_dynamic(p.slots.size(), false),
        numbers(p.slots.size()),
        storages(p.slots.size()) {}

  const Plan& plan;
  std::vector<StaticStep> steps;                ///< as the plan's
  std::vector<size_t> live_steps;               ///< those that do something
  std::vector<at::Tensor> tensors;              ///< by slot
  std::vector<bool> is_dynamic;                 ///< by slot: its tensor is another in each run
  std::vector<std::optional<int64_t>> numbers;  ///< by slot: sizes that the run read from data
  std::vector<StaticStorage> storages;          ///< by slot that owns one
  std::vector<StaticInput> inputs;              ///< as the plan's
  MemoryBlock block;             ///< outputs that somebody holds keep it; none until it is needed
  void* scratch = nullptr;       ///< instead of a block of its own
  int64_t block_bytes = 0;       ///< what is needed of it
  bool can_borrow = false;       ///< nothing of it outlives a run
  std::vector<int32_t> outputs;  ///< owners of storages of kind kOutput
  TransientMemory transient;     ///< but for what has no place in a run
  TransientMemory transient_outputs;  ///< of it, what lives on
  DynamicArena dynamic_arena;
  torch::jit::Stack stack;
  std::vector<at::Tensor> shown;  ///< to the observer
  size_t current_step = 0;

  at::Tensor& TensorAt(int32_t slot) { return tensors[static_cast<size_t>(slot)]; }
  StaticStorage& StorageOf(int32_t slot) {
    return storages[static_cast<size_t>(plan.slots[static_cast<size_t>(slot)].storage)];
  }
  /// Puts all tensors over the storage of `owner` on another one, and steps' addresses with them.
  void SetStorage(int32_t owner, const c10::Storage& storage);

  /// Where arguments of steps lie that are over that storage.
  void FindAddresses(int32_t owner);
  /// Points the storages of inputs to the memory of these, without owning it.
  Status BindInputs(std::span<const at::Tensor> given);
  Status MoveInput(int32_t slot, int64_t offset);
  void ReleaseDynamicInputs();
  /// Outputs of the last run that somebody still holds stay as they are: this run gets a new block.
  void KeepHeldOutputs();
  bool HasHeldOutputs();
  /// Puts block and outputs where they belong.
  void PlaceStorages();
  /// The i-th that does something, to run now; those after it are brought near.
  StaticStep& TakeLiveStep(size_t i);
  /// There is a block after it.
  void EnsureBlock();
  void UseBlock(MemoryBlock memory);
  /// As StaticProgram::Borrow.
  void Borrow(const ScratchMemory& lent);
  /// Forgets the block, which outputs that somebody holds keep.
  void LetGoOfBlock();
  void RunStep(StaticStep& step, ExecutionObserver* observer);
  void Call(const StaticStep& step);
  void RunKernel(const StaticStep& step);
  void RunDynamicKernel(StaticStep& step);
  /// What `layout` is with the sizes that this run read.
  PlanLayout LayoutNow(const DynamicLayout& layout) const;
  /// Where a dynamic operand of a kernel lies. Throws where it is laid out as no kernel expects.
  void* AddressNow(int32_t slot);
  void RunJoin(const StaticStep& step);
  void Adopt(const PlanStep& step);
  /// What stands in the place of a dynamic slot.
  c10::IValue Dynamic(int32_t slot);
  /// Calls an operator that allocates its results where they shall lie.
  void CallPlaced(StaticStep& step);
  char* Base() const {
    return static_cast<char*>(scratch != nullptr ? scratch : block.memory->get());
  }
  /// Where a value of a size that this run read lies in the block; null: it is allocated.
  void* OpenPlaceOf(int32_t slot, int64_t bytes);
  int64_t BytesNow(int32_t slot) const;
  at::Tensor NewOpenTensor(int32_t slot, const PlanLayout& layout);
  void Show(const PlanStep& step, ExecutionObserver& observer);
  /// What the caller gets: tensors of its own, over the memory of its inputs where an output is
  /// one.
  std::vector<at::Tensor> TakeOutputs(std::span<const at::Tensor> given);
  at::Tensor OutputAt(int32_t slot, std::span<const at::Tensor> given);
  void Release(int32_t owner);
  void TakeStorage(int32_t owner);  ///< allocates what was released
};

/// Calls fn(slot, result) for the tensors that a call of `step` left on the stack, as far as the
/// plan has slots for them.
template <class Fn>
void ForEachResult(const torch::jit::Stack& stack, const PlanStep& step, Fn&& fn) {
  size_t index = 0;
  const auto next = [&](const at::Tensor& result) {
    const int32_t slot = index < step.results.size() ? step.results[index] : -1;
    ++index;
    if (slot >= 0 && result.defined()) fn(slot, result);
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
