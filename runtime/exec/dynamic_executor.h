#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/input_sizes.h"

namespace strata {

/// Executes a graph with dynamic shapes: makes a plan for each combination of sizes that its inputs
/// have, and keeps the plans used last. A graph of static shapes has one plan. Static plans share
/// one arena, which grows when a plan needs more.
class DynamicExecutor {
 public:
  /// Plans that are kept.
  static constexpr size_t kKeptPlans = 8;
  /// An executor of the graph whose symbols are `sizes`.
  using Make = std::function<Result<Executor>(const SymbolSizes& sizes)>;

  /// Makes the plan for the sizes that the graph was traced for (`HintsOf`).
  /// REQUIRES: graph outlives the executor. Errors: those of `make`.
  static Result<DynamicExecutor> Create(const Graph& graph, Make make);

  /// As Executor::Run. Errors too: inputs whose sizes do not fit the graph's.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs,
                                      ExecutionObserver* observer = nullptr);

  /// Of the plan that ran last, or will first.
  const Plan& plan() const { return current().plan(); }
  ScratchMemory scratch() { return plans_.front().second.scratch(); }
  void Borrow(const ScratchMemory& scratch) { plans_.front().second.Borrow(scratch); }
  /// How often another plan came to run than the one before. What was lent before, is not now.
  int64_t num_changes() const { return num_changes_; }
  /// Is called before another plan comes to run, which takes what was lent.
  void BeforeChange(std::function<void()> told) { before_change_ = std::move(told); }
  bool lends_outputs() const { return current().lends_outputs(); }
  std::vector<KernelAnnotation> annotations() const { return current().annotations(); }
  /// Of the plan that ran last, which alone has memory; `transient` of all, each with the sizes
  /// that it read last.
  PlannedMemory planned_memory() const;
  size_t num_plans() const { return plans_.size(); }

 private:
  DynamicExecutor(const Graph& graph, Make make) : graph_(&graph), make_(std::move(make)) {}
  const Executor& current() const { return plans_.front().second; }
  /// Brings the plan for these sizes to the front.
  Status Choose(const SymbolSizes& sizes);

  const Graph* graph_;
  Make make_;
  std::function<void()> before_change_;
  std::vector<std::pair<SymbolSizes, Executor>> plans_;  // last used first
  int64_t num_changes_ = 0;
};

}  // namespace strata
