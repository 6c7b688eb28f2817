// The memory of a static program: borrowed inputs, the block, and outputs that outlive a run.

#include <algorithm>
#include <system_error>
#include <utility>

#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>

#include "runtime/aten/literals.h"
#include "runtime/exec/static/static_state.h"
#include "runtime/offload/host_memory.h"

namespace strata {

using at::Tensor;

c10::Storage EmptyStorage(int64_t bytes) {
  return {c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
          c10::DataPtr(nullptr, c10::Device(c10::kCPU)), /*allocator=*/nullptr,
          /*resizable=*/false};
}

Tensor TensorOver(const c10::Storage& storage, const PlanLayout& layout) {
  Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(ToScalarType(layout.dtype)));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, layout.offset);
  return tensor;
}

bool HasLayout(const Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (tensor.sizes() != sizes) return false;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] > 1 && tensor.strides()[dim] != strides[dim]) return false;
  }
  return true;
}

/// A tensor object of its own that lies in a storage as another one does.
static Tensor OnAnotherStorage(const Tensor& tensor, const c10::Storage& storage) {
  Tensor other = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(storage), tensor.key_set(), tensor.dtype());
  other.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                     tensor.storage_offset());
  return other;
}

void StaticState::SetStorage(SlotId owner, const c10::Storage& storage) {
  for (const SlotId slot : storages[owner].slots)
    TensorAt(slot).unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  for (const Tensor& alias : storages[owner].aliases)
    alias.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  UpdateAddresses(owner);
}

void StaticState::UpdateAddresses(SlotId owner) {
  for (const StaticStorage::Use& use : storages[owner].uses) {
    const bool has_memory = use.tensor->unsafe_storage().data() != nullptr;
    use.step->SetAddress(use.argument, has_memory ? use.tensor->mutable_data() : nullptr);
  }
}

void StaticState::Release(SlotId owner) {
  SetStorage(owner, EmptyStorage(storages[owner].bytes));
}

void StaticState::TakeStorage(SlotId owner) {
  const auto bytes = static_cast<size_t>(storages[owner].bytes);
  SetStorage(owner,
             {c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator()->allocate(bytes),
              /*allocator=*/nullptr, /*resizable=*/false});
}

PlanLayout StaticState::LayoutNow(const DynamicLayout& layout) const {
  const auto size_of = [&](int32_t slot) { return *numbers[SlotId{slot}]; };
  PlanLayout now{.dtype = layout.dtype, .sizes = {}, .strides = {}, .offset = 0};
  for (const SizeForm& size : layout.sizes)
    now.sizes.push_back(size.At(size_of));
  for (const SizeForm& stride : layout.strides)
    now.strides.push_back(stride.At(size_of));
  return now;
}

int64_t StaticState::BytesNow(SlotId slot) const {
  return plan.slots[slot].dynamic_layout->bytes.At(
      [&](int32_t size) { return *numbers[SlotId{size}]; });
}

bool StaticState::IsInBlock(const Tensor& tensor) const {
  if (scratch == nullptr && block.memory == nullptr) return false;
  const auto* const data = static_cast<const char*>(tensor.storage().data());
  return data >= Base() && data < Base() + block_bytes;
}

void* StaticState::AllocateInArena(SlotId slot, int64_t bytes) {
  const std::optional<int64_t> offset = dynamic_arena.Allocate(slot, bytes);
  return offset ? Base() + *offset : nullptr;
}

Tensor StaticState::NewDynamicTensor(SlotId slot, const PlanLayout& layout) {
  const int64_t bytes = layout.storage_bytes();
  void* const address = AllocateInArena(slot, bytes);
  if (address == nullptr)
    return at::empty_strided(layout.sizes, layout.strides, ToScalarType(layout.dtype));
  return TensorOver({c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
                     c10::DataPtr(address, c10::Device(c10::kCPU)), /*allocator=*/nullptr,
                     /*resizable=*/false},
                    layout);
}

Status StaticState::BindInputs(std::span<const Tensor> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    StaticInput& input = inputs[i];
    if (input.own == nullptr) {
      TensorAt(input.slot) = given[i];
      continue;
    }
    const c10::Storage& lent = given[i].storage();
    void* const data = lent.mutable_data();
    const int64_t offset = given[i].storage_offset();
    if (data == input.data && lent.nbytes() == input.bytes && offset == input.offset) continue;
    input.data = nullptr;  // until all is done
    input.own->set_data_ptr_noswap({data, c10::Device(c10::kCPU)});
    input.own->set_nbytes(lent.nbytes());
    if (offset != input.offset) STRATA_RETURN_IF_ERROR(MoveInput(input.slot, offset));
    UpdateAddresses(input.slot);
    input = {.slot = input.slot,
             .own = input.own,
             .data = data,
             .bytes = lent.nbytes(),
             .offset = offset};
  }
  return Ok();
}

/// Views of an input know their offsets from its first element.
Status StaticState::MoveInput(SlotId slot, int64_t offset) {
  const Tensor& input = TensorAt(slot);
  const int64_t moved =
      (offset - input.storage_offset()) * static_cast<int64_t>(input.element_size());
  for (const SlotId view : StorageOf(slot).slots) {
    const auto width = static_cast<int64_t>(TensorAt(view).element_size());
    if (moved % width != 0) {
      return Error(ErrorCode::kUnsupported, "input {} of graph {} lies at an odd offset",
                   plan.slots[slot].name, plan.graph);
    }
  }
  const auto move = [&](const Tensor& tensor) {
    const auto width = static_cast<int64_t>(tensor.element_size());
    tensor.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset() + moved / width);
  };
  for (const SlotId view : StorageOf(slot).slots)
    move(TensorAt(view));
  for (const Tensor& alias : StorageOf(slot).aliases)
    move(alias);
  return Ok();
}

void StaticState::ReleaseDynamicInputs() {
  for (const StaticInput& input : inputs) {
    if (input.own == nullptr) TensorAt(input.slot).reset();
  }
}

bool StaticState::HasHeldOutputs() {
  return block.memory != nullptr && std::ranges::any_of(outputs, [&](SlotId owner) {
           return TensorAt(owner).storage().use_count() > StorageOf(owner).references;
         });
}

void StaticState::KeepHeldOutputs() {
  if (HasHeldOutputs()) LetGoOfBlock();
}

void StaticState::EnsureBlock() {
  if (block.memory != nullptr) return;
  UseBlock({.memory = std::make_shared<c10::DataPtr>(
                c10::GetCPUAllocator()->allocate(static_cast<size_t>(block_bytes))),
            .bytes = block_bytes});
}

Status StaticState::EnsureHostBlock() {
  if (host_bytes == 0 || host_block != nullptr) return Ok();
  try {
    host_block = AllocateHostMemory(host_bytes, plan.options.offload_folder);
  } catch (const std::system_error& failure) {
    return Error(ErrorCode::kIo, "{}", failure.what());
  }
  for (const SlotId owner : IdsOf(storages)) {
    const StaticStorage& storage = storages[owner];
    if (storage.kind != StaticStorage::Kind::kHost) continue;
    c10::DataPtr address(static_cast<char*>(host_block.get()) + storage.offset,
                         c10::Device(c10::kCPU));
    SetStorage(owner, {c10::Storage::use_byte_size_t(), static_cast<size_t>(storage.bytes),
                       std::move(address), /*allocator=*/nullptr, /*resizable=*/false});
  }
  return Ok();
}

void StaticState::LetGoOfHostBlock() {
  if (host_block == nullptr) return;
  for (const SlotId owner : IdsOf(storages)) {
    if (storages[owner].kind == StaticStorage::Kind::kHost) Release(owner);
  }
  host_block.reset();
}

void StaticState::AwaitTransfers() const {
  if (transfers != nullptr) transfers->WaitForAll();
}

void StaticState::UseBlock(MemoryBlock memory) {
  block = std::move(memory);
  scratch = nullptr;
  PlaceStorages();
}

void StaticState::Borrow(const ScratchMemory& lent) {
  if (!can_borrow || lent.owner == nullptr || block_bytes > lent.bytes) {
    if (scratch != nullptr) LetGoOfBlock();
    return;
  }
  if (scratch == lent.address && block.memory == lent.owner) return;
  // Keeps the other program's block.
  block = {.memory = std::static_pointer_cast<c10::DataPtr>(lent.owner), .bytes = lent.bytes};
  scratch = lent.address;
  PlaceStorages();
}

void StaticState::LetGoOfBlock() {
  for (const SlotId owner : IdsOf(storages)) {
    const StaticStorage::Kind kind = storages[owner].kind;
    if (kind == StaticStorage::Kind::kOutput || kind == StaticStorage::Kind::kBlock) Release(owner);
  }
  block = {};
  scratch = nullptr;
}

void StaticState::PlaceStorages() {
  char* const base = Base();
  for (const SlotId owner : IdsOf(storages)) {
    StaticStorage& storage = storages[owner];
    const bool is_output = storage.kind == StaticStorage::Kind::kOutput;
    if (!is_output && storage.kind != StaticStorage::Kind::kBlock) continue;
    // An output may live longer than the program.
    c10::DataPtr address(base + storage.offset, c10::Device(c10::kCPU));
    if (is_output) {
      address = c10::DataPtr(
          base + storage.offset, new std::shared_ptr<c10::DataPtr>(block.memory),
          [](void* held) { delete static_cast<std::shared_ptr<c10::DataPtr>*>(held); },
          c10::Device(c10::kCPU));
    }
    SetStorage(owner, {c10::Storage::use_byte_size_t(), static_cast<size_t>(storage.bytes),
                       std::move(address), /*allocator=*/nullptr, /*resizable=*/false});
    storage.references = TensorAt(storage.slots[0]).storage().use_count();
  }
}

Tensor StaticState::OutputAt(SlotId slot, std::span<const Tensor> given) {
  const Tensor& home = TensorAt(slot);
  if (!home.defined()) return home;
  if (StorageOf(slot).kind == StaticStorage::Kind::kOutput)
    return scratch != nullptr ? home.clone() : OnAnotherStorage(home, home.storage());
  // Memory of inputs belongs to storages of the caller.
  const auto input = input_of.find(home.storage().unsafeGetStorageImpl());
  if (input != input_of.end()) return OnAnotherStorage(home, given[input->second].storage());
  // An operator may have written a tensor of the program in place.
  return OnAnotherStorage(home, home.storage());
}

std::vector<Tensor> StaticState::TakeOutputs(std::span<const Tensor> given) {
  std::vector<at::Tensor> taken;
  taken.reserve(plan.outputs.size());
  for (const SlotId slot : plan.outputs)
    taken.push_back(!slot.valid() ? Tensor() : OutputAt(slot, given));
  for (const SlotId slot : plan.outputs) {
    if (!slot.valid()) continue;
    if (is_dynamic[slot]) TensorAt(slot).reset();
    // Also where only a view of it is an output.
    if (StorageOf(slot).kind == StaticStorage::Kind::kAdopted) Release(plan.slots[slot].storage);
  }
  return taken;
}

}  // namespace strata
