#include "runtime/exec/dynamic_executor.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata {

Result<DynamicExecutor> DynamicExecutor::Create(const Graph& graph, Make make) {
  DynamicExecutor executor(graph, std::move(make));
  STRATA_RETURN_IF_ERROR(executor.Choose(HintsOf(graph)));
  return executor;
}

Status DynamicExecutor::Choose(const SymbolSizes& sizes) {
  const auto known = std::ranges::find(plans_, sizes, [](const auto& plan) { return plan.first; });
  if (!plans_.empty() && known == plans_.begin()) return Ok();
  ++num_changes_;
  if (before_change_) before_change_();
  MemoryBlock block = plans_.empty() ? MemoryBlock() : plans_.front().second.TakeBlock();
  if (known != plans_.end()) {
    std::rotate(plans_.begin(), known, std::next(known));
  } else {
    if (plans_.size() == kKeptPlans) plans_.pop_back();
    STRATA_TRY(Executor executor, make_(sizes));
    plans_.emplace(plans_.begin(), sizes, std::move(executor));
  }
  plans_.front().second.GiveBlock(std::move(block));
  return Ok();
}

Result<std::vector<at::Tensor>> DynamicExecutor::Run(std::span<const at::Tensor> inputs,
                                                     ExecutionObserver* observer) {
  // A graph of static shapes has one plan.
  if (!plans_.front().first.empty()) {
    std::vector<std::vector<int64_t>> shapes;
    for (const at::Tensor& input : inputs)
      shapes.push_back(input.sizes().vec());
    STRATA_TRY(const SymbolSizes sizes, SizesOfInputs(*graph_, shapes));
    STRATA_RETURN_IF_ERROR(Choose(sizes));
  }
  return plans_.front().second.Run(inputs, observer);
}

PlannedMemory DynamicExecutor::planned_memory() const {
  PlannedMemory total{.held = current().planned_memory().held};
  for (const auto& [sizes, executor] : plans_) {
    const PlannedMemory memory = executor.planned_memory();
    total.constants += memory.constants;
    total.transient = std::max(total.transient, memory.transient);
    total.offloaded = std::max(total.offloaded, memory.offloaded);
    total.outputs = std::max(total.outputs, memory.outputs);
    if (!memory.transient_at_most || !total.transient_at_most) {
      total.transient_at_most.reset();
    } else {
      total.transient_at_most = std::max(*total.transient_at_most, *memory.transient_at_most);
    }
  }
  return total;
}

}  // namespace strata
