#pragma once
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/device/device.h"

namespace strata::testing {

/// A fake device that logs its calls. Kernels are functions: they run at once, or when their graph
/// is replayed.
class FakeDevice : public Device {
 public:
  const DeviceTraits& traits() const override { return traits_; }

  Status UseStream(int32_t stream) override { return Note("stream" + std::to_string(stream)); }
  void* stream() const override { return nullptr; }
  Status Record(int32_t event) override { return Note("record" + std::to_string(event)); }
  Status Wait(int32_t event) override { return Note("wait" + std::to_string(event)); }
  Status Synchronize() override { return Note("synchronize"); }

  Result<std::vector<DeviceFunction*>> Load(std::span<const Kernel>) override {
    return Error("a fake device has no kernels");
  }
  Result<std::vector<DeviceFunction*>> LoadFlex(std::span<const FlexKernel>) override {
    return Error("a fake device has no kernels");
  }
  Status Launch(DeviceFunction*, std::span<void* const>) override {
    return Error("a fake device has no kernels");
  }

  DeviceMemory memory() const override { return {}; }
  void ResetPeakMemory() override {}

  Status EnterPool() override { return Note("enter"); }
  void LeavePool() override { log += "leave "; }
  Status BeginCapture() override {
    is_capturing_ = true;
    graphs_.emplace_back();
    num_recorded = 0;
    return Note("begin");
  }
  Result<int64_t> EndCapture() override {
    is_capturing_ = false;
    log += "end ";
    return static_cast<int64_t>(graphs_.size()) - 1;
  }
  int64_t NumRecorded() override { return num_recorded; }
  Status Replay(int64_t graph) override {
    for (const auto& kernel : graphs_[static_cast<size_t>(graph)])
      kernel();
    return Note("replay");
  }
  Status Copy(const DeviceBuffer& to, const DeviceBuffer& from) override {
    std::memcpy(to.address, from.address, static_cast<size_t>(from.bytes));
    return Note("copy");
  }
  void Destroy(int64_t graph) override { log += "destroy" + std::to_string(graph) + " "; }

  void Issue(std::function<void()> kernel) {
    if (!is_capturing_) {
      kernel();
      return;
    }
    graphs_.back().push_back(std::move(kernel));
    ++num_recorded;
  }
  bool is_capturing() const { return is_capturing_; }

  std::string log;
  int64_t num_recorded = 0;

 protected:
  DeviceTraits traits_;

 private:
  Status Note(const std::string& what) {
    log += what + " ";
    return Ok();
  }
  bool is_capturing_ = false;
  std::vector<std::vector<std::function<void()>>> graphs_;
};

}  // namespace strata::testing
