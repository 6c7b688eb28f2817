#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ir/fingerprint.h"
#include "ir/graph.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/step/step_times.h"

namespace strata {

/// What a tensor holds.
struct ValueStatistics {
  int64_t elements = 0;
  int64_t nan_count = 0, inf_count = 0;
  double min = 0.0, max = 0.0, mean = 0.0;  ///< of the finite elements; 0 when there are none
};
/// Of real numbers, integers and booleans; of complex numbers over both parts.
ValueStatistics Measure(const at::Tensor& tensor);

/// What runs of a node took and gave.
struct NodeProfile {
  int64_t calls = 0;
  std::chrono::nanoseconds time{};  ///< of all calls together
  int64_t bytes = 0;                ///< of the results of one call
  ValueStatistics values;           ///< of the first result of the last call; only if asked for
};

/// Times the nodes of a graph while it runs, and looks at their values. Work that a plan does when
/// it is bound, and views that it folds, take no time in a run and have no profile.
class NodeProfiler final : public ExecutionObserver {
 public:
  /// Call just before and after each run of the executor of `plan`.
  void BeginRun(bool with_values);
  void EndRun(const Plan& plan);
  void OnStep(const PlanStep& step, std::span<const at::Tensor> results) override;
  bool WantsAllSteps() const override { return with_values_; }
  bool ReadsResults() const override { return with_values_; }
  StepTimes* times() override { return with_values_ ? nullptr : &times_; }

  std::map<NodeId, NodeProfile> nodes() const;

 private:
  /// Runs of one plan by StepTimes.
  struct TimedRuns {
    std::vector<NodeId> nodes;   // by timed step
    std::vector<int64_t> bytes;  // of its results
    std::vector<double> nanoseconds;
    int64_t runs = 0;
  };

  std::map<NodeId, NodeProfile> nodes_;  // by OnStep
  std::map<Fingerprint, TimedRuns> timed_;
  StepTimes times_;
  NodeId last_node_;  // of the run; a fused node may be several steps
  bool with_values_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace strata
