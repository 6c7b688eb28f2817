#pragma once
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "tests/support/fake_cpu_device.h"

namespace strata::testing {

/// A double that captures: operators and kernels that are called in between are kept with their
/// tensors, and a replay calls them again, with results where they were. As a GPU's graph it knows
/// addresses and nothing else; as in a capture, nothing has happened when it ends.
class ReplayingFakeDevice final : public FakeCpuDevice {
 public:
  explicit ReplayingFakeDevice(bool is_gpu = false) : FakeCpuDevice(is_gpu) { RegisterTape(); }

  Result<std::vector<DeviceFunction*>> Load(std::span<const Kernel> kernels) override {
    auto functions = FakeCpuDevice::Load(kernels);
    for (size_t i = 0; functions && i < kernels.size(); ++i)
      kernels_.emplace((*functions)[i], kernels[i]);
    return functions;
  }
  Status Launch(DeviceFunction* function, std::span<void* const> arguments) override {
    if (is_capturing()) {
      // Kernels of flex attention write to results alone.
      if (const auto kernel = kernels_.find(function); kernel != kernels_.end())
        SaveWritten(kernel->second, arguments);
      const std::vector<void*> addresses(arguments.begin(), arguments.end());
      Keep([this, function, addresses] { (void)FakeCpuDevice::Launch(function, addresses); });
    }
    return FakeCpuDevice::Launch(function, arguments);
  }

  Status BeginCapture() override {
    made_.clear();
    before_.clear();
    alive_.emplace_back();
    Active() = this;
    c10::impl::tls_set_dispatch_key_included(kTapeKey, true);
    return FakeCpuDevice::BeginCapture();
  }
  Result<int64_t> EndCapture() override {
    c10::impl::tls_set_dispatch_key_included(kTapeKey, false);
    Active() = nullptr;
    for (const auto& restore : std::exchange(before_, {}))
      restore();
    return FakeCpuDevice::EndCapture();
  }

 private:
  // Between autograd and the caller; nothing else uses it.
  static constexpr c10::DispatchKey kTapeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

  static ReplayingFakeDevice*& Active() {
    thread_local ReplayingFakeDevice* active = nullptr;
    return active;
  }

  static void RegisterTape() {
    static const torch::Library library = [] {
      torch::Library fallback(torch::Library::IMPL, "_", kTapeKey, __FILE__, __LINE__);
      fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&Call>());
      return fallback;
    }();
  }

  template <class Fn>
  static void ForEachTensor(const c10::IValue& value, Fn&& fn) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) fn(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector())
        fn(tensor);
    }
  }

  static void Call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard below(kTapeKey);
    ReplayingFakeDevice& self = *Active();
    const c10::FunctionSchema& schema = op.schema();
    const size_t count = schema.arguments().size();
    const torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count),
                                      stack->end());
    for (size_t i = 0; i < count; ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) {
        ForEachTensor(arguments[i], [&](const at::Tensor& tensor) { self.Save(tensor); });
      }
    }
    op.callBoxed(stack);
    const torch::jit::Stack results(
        stack->end() - static_cast<std::ptrdiff_t>(schema.returns().size()), stack->end());
    for (const torch::jit::Stack* tensors : {&arguments, &results}) {
      for (const c10::IValue& value : *tensors)
        ForEachTensor(value,
                      [&](const at::Tensor& tensor) { self.alive_.back().push_back(tensor); });
    }
    std::set<const void*> operands;
    for (const c10::IValue& value : arguments)
      ForEachTensor(value, [&](const at::Tensor& t) { operands.insert(StorageOf(t)); });
    std::vector<at::Tensor> homes;  // undefined: shares an operand's memory
    for (const c10::IValue& value : results) {
      ForEachTensor(value, [&](const at::Tensor& tensor) {
        const bool is_new = !operands.contains(StorageOf(tensor));
        homes.push_back(is_new ? tensor : at::Tensor());
        if (is_new) self.made_.insert(StorageOf(tensor));
      });
    }
    self.Keep([op, arguments, homes] {
      torch::jit::Stack again = arguments;
      op.callBoxed(&again);
      size_t next = 0;
      for (const c10::IValue& value : again) {
        ForEachTensor(value, [&](const at::Tensor& tensor) {
          const at::Tensor& home = homes[next++];
          if (home.defined()) home.copy_(tensor);
        });
      }
    });
  }

  static const void* StorageOf(const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }

  void Keep(std::function<void()> call) { FakeDevice::Issue(std::move(call)); }

  /// What was there before the capture is there after it.
  void Save(const at::Tensor& tensor) {
    if (made_.contains(StorageOf(tensor))) return;
    before_.insert(before_.begin(), [tensor, copy = tensor.clone()] { tensor.copy_(copy); });
  }

  void SaveWritten(const Kernel& kernel, std::span<void* const> arguments) {
    for (const Kernel::Store& store : kernel.stores) {
      const Kernel::Access& access = kernel.accesses[static_cast<size_t>(store.access)];
      if (access.argument >= kernel.num_inputs) continue;
      int64_t last = 0;
      for (size_t dim = 0; dim < kernel.sizes.size(); ++dim)
        last += (kernel.sizes[dim] - 1) * access.strides[dim];
      auto* const first = static_cast<char*>(arguments[static_cast<size_t>(access.argument)]);
      std::vector<char> bytes(first, first + (last + 1) * ByteSize(access.dtype));
      before_.insert(before_.begin(),
                     [first, bytes] { std::memcpy(first, bytes.data(), bytes.size()); });
    }
  }

  std::map<DeviceFunction*, Kernel> kernels_;
  std::set<const void*> made_;                  // storages, since the capture began
  std::vector<std::function<void()>> before_;   // latest first
  std::vector<std::vector<at::Tensor>> alive_;  // by graph: its memory
};

}  // namespace strata::testing
