#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace strata {

/// Memory of a tensor on a device.
struct DeviceBuffer {
  void* address = nullptr;
  int64_t bytes = 0;
  friend bool operator==(const DeviceBuffer&, const DeviceBuffer&) = default;
};

/// An input of a captured run: a tensor, or a number that is baked in.
using ReplayInput = std::variant<DeviceBuffer, int64_t, double>;

/// What captures and replays: CUDA, or a double of it in tests.
class CaptureDevice {
 public:
  virtual ~CaptureDevice() = default;
  /// From here to `LeavePool` memory comes from the pool that graphs keep, on the capture's stream.
  virtual Status EnterPool() = 0;
  virtual void LeavePool() = 0;
  /// Calls of kernels between the two are recorded, not run.
  virtual Status BeginCapture() = 0;
  virtual Result<int64_t> EndCapture() = 0;  ///< the graph
  /// Nodes that the capture has recorded so far.
  virtual int64_t NumRecorded() = 0;
  virtual Status Replay(int64_t graph) = 0;
  virtual Status Copy(const DeviceBuffer& to, const DeviceBuffer& from) = 0;
  virtual void Destroy(int64_t graph) = 0;
};

/// What all captured runs of a process share: the pool lives until `TearDown`, which must come
/// before process groups go, for a graph holds on to their communicators.
class CapturedRun;
class ReplayManager {
 public:
  explicit ReplayManager(CaptureDevice& device) : device_(device) {}
  /// Drops all graphs. False when it was done before.
  bool TearDown();
  bool is_torn_down() const { return is_torn_down_; }

 private:
  friend class CapturedRun;
  CaptureDevice& device_;
  std::vector<CapturedRun*> runs_;
  bool is_torn_down_ = false;
};

/// Runs a plan as a device graph from its third call on.
///
///   call 1   runs, in the pool of graphs: allocators, libraries and communicators get ready
///   call 2   keeps its inputs' memory as the graph's, captures, replays
///   call 3…  copies inputs that are not static into that memory, replays
///
/// Outputs of the second call are those of all later ones: the same memory, overwritten.
/// Source: torchtitan graph_trainer cudagraph.py.
class CapturedRun {
 public:
  /// Issues the plan's work on the device and returns the outputs.
  using Body =
      std::function<Result<std::vector<DeviceBuffer>>(std::span<const ReplayInput> inputs)>;

  /// `static_inputs`: indices of tensors with the same address in each call: parameters, optimizer
  /// state. REQUIRES: the manager is not torn down and outlives the run.
  CapturedRun(ReplayManager& manager, std::vector<size_t> static_inputs, Body body);
  CapturedRun(const CapturedRun&) = delete;
  CapturedRun& operator=(const CapturedRun&) = delete;
  ~CapturedRun();

  /// Errors, with the input's index: another number or size of inputs than in the second call, a
  /// static one at another address, two that changed places, another number than was captured.
  /// After `TearDown`: kInvalid.
  Result<std::vector<DeviceBuffer>> Call(std::span<const ReplayInput> inputs);

  enum class State : uint8_t { kNew, kWarm, kCaptured, kGone };
  State state() const { return state_; }

 private:
  friend class ReplayManager;
  Status Check(std::span<const ReplayInput> inputs) const;
  Status CopyInputs(std::span<const ReplayInput> inputs);
  Status Capture(std::span<const ReplayInput> inputs);
  bool IsStatic(size_t index) const;

  ReplayManager& manager_;
  std::vector<size_t> static_inputs_;
  Body body_;
  State state_ = State::kNew;
  int64_t graph_ = -1;
  std::vector<ReplayInput> inputs_;
  std::vector<DeviceBuffer> outputs_;
};

}  // namespace strata
