#include "runtime/exec/graph_run.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <set>

#include <ATen/Context.h>

#include "runtime/exec/tensor_difference.h"
#include "runtime/plan/input_sizes.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/collectives.h"

namespace strata {
namespace {

using at::Tensor;

/// Kernels are bound to offsets in memory: a plan with some has memory of its own.
Result<Plan> PlanFor(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& input : inputs)
    shapes.push_back(input.sizes().vec());
  STRATA_TRY(SymbolSizes sizes, SizesOfInputs(graph, shapes));
  sizes.merge(DrawSizes(graph));
  STRATA_TRY(Plan plan, Lower(graph, {}, sizes));
  if (plan.kernels.empty()) return plan;
  return Lower(graph, {.fold_views = true}, sizes);
}

/// Of the plan and of its bodies.
Constants ConstantsOf(const Plan& plan, const NamedTensors& given) {
  Constants constants;
  for (const Plan& body : plan.bodies)
    std::ranges::move(ConstantsOf(body, given), std::back_inserter(constants));
  for (const Plan::Constant& constant : plan.constants) {
    const auto found = given.find(constant.path);
    if (found != given.end()) constants.emplace_back(constant.path, found->second);
  }
  return constants;
}

template <class List>
auto FindValue(const List& list, ValueId value) {
  const auto found =
      std::ranges::find(list, value, [](const auto& element) { return element.value; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

bool GraphRun::Input::IsWritten() const {
  return before.defined() && HasOrder(before.scalar_type()) && Compare(before, tensor).elements > 0;
}

const GraphRun::Input* GraphRun::FindInput(ValueId value) const {
  return FindValue(inputs, value);
}

const GraphRun::Output* GraphRun::FindOutput(ValueId value) const {
  return FindValue(outputs, value);
}

std::vector<std::pair<std::string, Tensor>> GraphRun::Results() const {
  std::vector<std::pair<std::string, Tensor>> results;
  std::set<std::string> seen;
  for (const Output& output : outputs) {
    if (!output.name.empty() && seen.insert(output.name).second)
      results.emplace_back(output.name, output.tensor);
  }
  for (const Input& input : inputs) {
    if (input.IsWritten() && seen.insert(input.name).second)
      results.emplace_back(input.name, input.tensor);
  }
  return results;
}

Result<GraphRun> RunGraph(const Graph& graph, const NamedTensors& given,
                          ExecutionObserver* observer) {
  RegisterCollectives();  // and what placed graphs call
  STRATA_TRY(std::vector<Tensor> inputs, TakeInputs(graph, given));
  static std::mutex one_at_a_time;  // ranks make the same kernels
  std::unique_lock lock(one_at_a_time);
  STRATA_TRY(Plan plan, PlanFor(graph, inputs));
  const bool writes = std::ranges::any_of(plan.steps, &PlanStep::mutates);
  GraphRun run;
  const std::vector<NodeId> nodes = GivenInputs(graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    run.inputs.push_back({.value = graph.result(nodes[i]),
                          .name = InputName(graph, nodes[i]),
                          .tensor = inputs[i],
                          .before = writes ? inputs[i].clone() : Tensor()});
  }
  const Constants constants = ConstantsOf(plan, given);
  STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), constants));
  lock.unlock();
  at::manual_seed(0);  // both graphs of a comparison draw the same random numbers
  STRATA_TRY(const std::vector<Tensor> outputs, executor.Run(inputs, observer));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const SlotId slot = executor.plan().outputs[i];
    GraphRun::Output& output = run.outputs.emplace_back();
    output.tensor = outputs[i];
    if (!slot.valid()) continue;
    output.value = executor.plan().slots[slot].value;
    output.name = executor.plan().slots[slot].name;
  }
  return run;
}

}  // namespace strata
