#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "runtime/codegen/kernel_library.h"
#include "runtime/codegen/schedule.h"
#include "tests/support/fake_device.h"
#include "tests/support/graphs.h"

namespace strata {

struct DeviceFunction {
  KernelLibrary::Function function = nullptr;
  int64_t units = 0;
  std::vector<int64_t> dynamic_numbers;
};

namespace testing {

/// A fake GPU with the memory and the operators of the CPU; its kernels are C++. Captured work runs
/// at once; a replay only counts.
class FakeCpuDevice : public FakeDevice {
 public:
  explicit FakeCpuDevice(bool is_gpu = false) {
    traits_ = {.name = "cpu", .is_gpu = is_gpu, .capability = 9.0, .cudnn = 91900};
  }

  Result<std::vector<DeviceFunction*>> Load(std::span<const Kernel> kernels) override {
    libraries_.push_back(OrDie(KernelLibrary::Load(kernels)));
    std::vector<DeviceFunction*> loaded;
    for (size_t i = 0; i < kernels.size(); ++i) {
      functions_.push_back(std::make_unique<DeviceFunction>(
          DeviceFunction{.function = libraries_.back()->function(KernelId{static_cast<int32_t>(i)}),
                         .units = MakeSchedule(kernels[i]).units,
                         .dynamic_numbers = kernels[i].dynamic_numbers()}));
      loaded.push_back(functions_.back().get());
    }
    return loaded;
  }
  Result<std::vector<DeviceFunction*>> LoadFlex(std::span<const FlexKernel> kernels) override {
    libraries_.push_back(OrDie(KernelLibrary::Load({}, kernels, {})));
    std::vector<DeviceFunction*> loaded;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const FlexKernelId id{static_cast<int32_t>(i)};
      functions_.push_back(std::make_unique<DeviceFunction>(
          DeviceFunction{.function = libraries_.back()->flex_function(id),
                         .units = kernels[i].units(),
                         .dynamic_numbers = {}}));
      loaded.push_back(functions_.back().get());
    }
    return loaded;
  }
  Status Launch(DeviceFunction* function, std::span<void* const> arguments) override {
    function->function(arguments.data(), 0, function->units, function->dynamic_numbers.data());
    ++num_launched;
    if (is_capturing()) ++num_recorded;
    return Ok();
  }

  int num_launched = 0;

 private:
  std::vector<std::unique_ptr<KernelLibrary>> libraries_;
  std::vector<std::unique_ptr<DeviceFunction>> functions_;
};

}  // namespace testing
}  // namespace strata
