#include "runtime/exec/boxed/program_capture.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "runtime/plan/device/schedule.h"

namespace strata {
namespace {

using at::Tensor;

std::vector<size_t> StaticInputs(const std::vector<CaptureInput>& inputs) {
  std::vector<size_t> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_static) found.push_back(i);
  }
  return found;
}

DeviceBuffer BufferOf(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {.address = tensor.mutable_data_ptr(), .bytes = static_cast<int64_t>(tensor.nbytes())};
}

std::string_view ModuleOf(const PlanStep& step) {
  const std::string_view where = step.where;
  return where.substr(0, where.find(" ("));
}

}  // namespace

std::vector<CaptureInput> CaptureInputsOf(const Plan& plan) {
  const std::vector<bool> are_written = WrittenInputs(plan);
  std::vector<CaptureInput> inputs;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    inputs.push_back({.name = plan.slots[plan.inputs[i].slot].name,
                      .is_static = plan.inputs[i].is_static,
                      .is_written = are_written[i]});
  }
  return inputs;
}

ProgramCapture::ProgramCapture(std::string graph, std::vector<CaptureInput> inputs, Device& device,
                               Steps steps)
    : graph_(std::move(graph)),
      described_(std::move(inputs)),
      device_(device),
      steps_(std::move(steps)),
      run_(device.graphs(), StaticInputs(described_),
           [this](std::span<const ReplayInput>) { return Issue(); }) {}

Result<std::vector<DeviceBuffer>> ProgramCapture::Issue() {
  is_capturing_ = run_.state() == CapturedRun::State::kWarm;
  annotations_.clear();
  // A capture that was begun must end: what operators throw waits until then.
  std::exception_ptr failure;
  try {
    outputs_ = steps_(inputs_);
  } catch (...) {
    failure = std::current_exception();
  }
  is_capturing_ = false;
  if (failure) {
    thrown_ = failure;
    return Error("an operator failed");
  }
  std::vector<DeviceBuffer> buffers;
  for (const Tensor& output : outputs_)
    buffers.push_back(BufferOf(output));
  return buffers;
}

Result<std::vector<Tensor>> ProgramCapture::Run(std::span<const Tensor> inputs) {
  std::vector<ReplayInput> buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!described_[i].is_static && !inputs[i].is_non_overlapping_and_dense()) {
      return Error(ErrorCode::kUnsupported, "input {} of captured graph {} has gaps",
                   described_[i].name, graph_);
    }
    buffers.emplace_back(BufferOf(inputs[i]));
  }
  inputs_ = inputs;
  const bool captures = run_.state() == CapturedRun::State::kWarm;
  auto called = run_.Call(buffers);
  inputs_ = {};
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  if (!called) return std::move(called).error();
  if (!is_captured()) return std::exchange(outputs_, {});
  if (captures) {
    graph_inputs_.assign(inputs.begin(), inputs.end());
    graph_outputs_ = std::exchange(outputs_, {});
  } else {
    STRATA_RETURN_IF_ERROR(CopyBack(inputs));
  }
  return graph_outputs_;
}

/// What the graph wrote to its copies of inputs belongs to the caller's.
Status ProgramCapture::CopyBack(std::span<const Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeviceBuffer from = BufferOf(graph_inputs_[i]), to = BufferOf(inputs[i]);
    if (!described_[i].is_written || from.address == to.address) continue;
    STRATA_RETURN_IF_ERROR(device_.Copy(to, from));
  }
  return Ok();
}

void ProgramCapture::AfterStep(const PlanStep& step) {
  if (!is_capturing_) return;
  const int64_t recorded = device_.NumRecorded();
  const int64_t before = annotations_.empty() ? 0 : annotations_.back().last;
  if (recorded == before) return;
  if (!annotations_.empty() && annotations_.back().module == ModuleOf(step)) {
    annotations_.back().last = recorded;
  } else {
    annotations_.push_back(
        {.module = std::string(ModuleOf(step)), .first = before, .last = recorded});
  }
}

}  // namespace strata
