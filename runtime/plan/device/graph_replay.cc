#include "runtime/plan/device/graph_replay.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace strata {

bool ReplayManager::TearDown() {
  if (is_torn_down_) return false;
  is_torn_down_ = true;
  for (CapturedRun* run : runs_) {
    if (run->graph_ >= 0) device_.Destroy(std::exchange(run->graph_, -1));
    run->state_ = CapturedRun::State::kGone;
    run->inputs_.clear();
    run->outputs_.clear();
  }
  runs_.clear();
  return true;
}

CapturedRun::CapturedRun(ReplayManager& manager, std::vector<size_t> static_inputs, Body body)
    : manager_(manager), static_inputs_(std::move(static_inputs)), body_(std::move(body)) {
  STRATA_CHECK(!manager.is_torn_down_, "graphs were torn down before");
  manager.runs_.push_back(this);
}

CapturedRun::~CapturedRun() {
  if (graph_ >= 0) manager_.device_.Destroy(graph_);
  std::erase(manager_.runs_, this);
}

bool CapturedRun::IsStatic(size_t index) const {
  return std::ranges::find(static_inputs_, index) != static_inputs_.end();
}

Status CapturedRun::Check(std::span<const ReplayInput> inputs) const {
  if (inputs.size() != inputs_.size()) {
    return Error("a captured run has {} inputs, not {}", inputs_.size(), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].index() != inputs_[i].index()) {
      return Error("input {} of a captured run is of another kind than when it was captured", i);
    }
    const auto* buffer = std::get_if<DeviceBuffer>(&inputs[i]);
    if (buffer == nullptr) {
      if (inputs[i] != inputs_[i]) {
        return Error(
            "input {} of a captured run is a number that was captured as another: make "
            "it a tensor",
            i);
      }
      continue;
    }
    const auto& captured = std::get<DeviceBuffer>(inputs_[i]);
    if (buffer->bytes != captured.bytes) {
      return Error("input {} of a captured run has {} bytes, not {}", i, buffer->bytes,
                   captured.bytes);
    }
    if (IsStatic(i) && buffer->address != captured.address) {
      return Error("input {} of a captured run is static and has moved", i);
    }
  }
  return Ok();
}

Status CapturedRun::CopyInputs(std::span<const ReplayInput> inputs) {
  std::vector<size_t> moved;
  std::vector<const void*> homes;  // of inputs that are copied into
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* from = std::get_if<DeviceBuffer>(&inputs[i]);
    if (from == nullptr || IsStatic(i)) continue;
    const void* home = std::get<DeviceBuffer>(inputs_[i]).address;
    homes.push_back(home);
    if (home != from->address) moved.push_back(i);
  }
  if (moved.empty()) return Ok();
  std::ranges::sort(homes, std::less<>());
  for (const size_t i : moved) {
    if (!std::ranges::binary_search(homes, std::get<DeviceBuffer>(inputs[i]).address,
                                    std::less<>()))
      continue;
    return Error(
        "input {} of a captured run lies where it was captured with another, which is written "
        "over: give a copy",
        i);
  }
  for (const size_t i : moved) {
    STRATA_RETURN_IF_ERROR(manager_.device_.Copy(std::get<DeviceBuffer>(inputs_[i]),
                                                 std::get<DeviceBuffer>(inputs[i])));
  }
  return Ok();
}

Status CapturedRun::Capture(std::span<const ReplayInput> inputs) {
  CaptureDevice& device = manager_.device_;
  STRATA_RETURN_IF_ERROR(device.EnterPool());
  if (auto begun = device.BeginCapture(); !begun) {
    device.LeavePool();
    return begun;
  }
  auto outputs = body_(inputs);
  // A capture that was begun must end, whatever happened in it.
  auto graph = device.EndCapture();
  device.LeavePool();
  if (!outputs) {
    if (graph) device.Destroy(*graph);
    return std::move(outputs).error();
  }
  if (!graph) return std::move(graph).error();
  graph_ = *graph;
  inputs_.assign(inputs.begin(), inputs.end());
  outputs_ = std::move(outputs).value();
  state_ = State::kCaptured;
  return Ok();
}

Result<std::vector<DeviceBuffer>> CapturedRun::Call(std::span<const ReplayInput> inputs) {
  switch (state_) {
    case State::kGone:
      return Error("a captured run was called after its graph was torn down");
    case State::kNew: {
      STRATA_RETURN_IF_ERROR(manager_.device_.EnterPool());
      auto outputs = body_(inputs);
      manager_.device_.LeavePool();
      if (outputs) state_ = State::kWarm;
      return outputs;
    }
    case State::kWarm:
      STRATA_RETURN_IF_ERROR(Capture(inputs));
      break;
    case State::kCaptured:
      STRATA_RETURN_IF_ERROR(Check(inputs));
      STRATA_RETURN_IF_ERROR(CopyInputs(inputs));
      break;
  }
  STRATA_RETURN_IF_ERROR(manager_.device_.Replay(graph_));
  return outputs_;
}

}  // namespace strata
