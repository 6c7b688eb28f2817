#include "runtime/train/programs/training_graphs.h"

#include <algorithm>
#include <utility>

#include <c10/util/strides.h>

#include <fmt/format.h>

#include "passes/core/pass_manager.h"
#include "runtime/exec/executor.h"
#include "runtime/trace/scope.h"
#include "runtime/train/programs/budget_oracle.h"
#include "runtime/train/programs/trace_programs.h"

namespace strata {
namespace {

/// Without a compiler, fused nodes run as the operators that they were.
Result<Executor> MakeExecutor(const Graph& graph, const SymbolSizes& sizes,
                              const Constants& constants, PlanOptions options,
                              std::vector<std::string>& warnings, Device* device) {
  // Other options lay out the memory of the CPU.
  if (device != nullptr) options = {.on_gpu = true, .unfuse = options.unfuse};
  STRATA_TRY(Plan plan, Lower(graph, options, sizes));
  const bool has_kernels = !plan.kernels.empty() || !plan.flex_kernels.empty();
  auto executor = Executor::Bind(std::move(plan), constants, {}, device);
  if (executor || !has_kernels) return executor;
  warnings.push_back(fmt::format("graph {} runs without fused kernels: {}", graph.name_text(),
                                 executor.error().message()));
  options.unfuse = true;
  STRATA_TRY(plan, Lower(graph, options, sizes));
  return Executor::Bind(std::move(plan), constants, {}, device);
}

bool IsValidation(std::string_view graph) {
  return graph == kValidateGraph || graph.ends_with(kStageValidateSuffix);
}

/// Of the step's outputs but the loss, each in memory of its own.
int64_t GradientBytes(const Plan& step) {
  int64_t bytes = 0;
  for (size_t i = 1; i < step.outputs.size(); ++i) {
    if (!step.outputs[i].valid()) continue;
    const std::optional<PlanLayout>& layout = step.slots[step.outputs[i]].layout;
    if (layout) bytes += layout->num_elements() * ByteSize(layout->dtype);
  }
  return bytes;
}

}  // namespace

at::Tensor AsGraphInput(const at::Tensor& tensor) {
  const at::Tensor rows = tensor.contiguous();
  const c10::DimVector strides = c10::contiguous_strides(rows.sizes());
  return rows.strides() == at::IntArrayRef(strides) ? rows : rows.as_strided(rows.sizes(), strides);
}

Status TracedTraining::Make(const TrainSpec& spec, std::vector<std::unique_ptr<Pass>> passes,
                            const CompileWatch& watch, const PlanOptions& plan,
                            const Device* device) {
  const TargetScope target(device != nullptr ? device->traits() : DeviceTraits());
  module->ReserveStableIds(watch.first_stable_id);
  STRATA_RETURN_IF_ERROR(TraceTraining(spec, *module, constants));

  if (device == nullptr) AskPlannerForPeaks(passes, plan, constants);
  PassManager manager({.run_ref = watch.run_ref});
  for (std::unique_ptr<Pass>& pass : passes)
    manager.Add(std::move(pass));
  for (PassInstrumentation* watcher : watch.watchers)
    manager.Watch(*watcher);
  if (auto passed = manager.Run(*module); !passed) return std::move(passed).error();
  return Ok();
}

Status TracedTraining::Show(const CompileWatch& watch) {
  module->ShiftStableIds(watch.first_stable_id - 1);
  PassManager manager({.verify = false, .run_ref = watch.run_ref});
  for (PassInstrumentation* watcher : watch.watchers)
    manager.Watch(*watcher);
  if (auto shown = manager.Run(*module); !shown) return std::move(shown).error();
  return Ok();
}

Status TrainingGraphs::Bind(const TracedTraining& traced, const TrainConfig& config) {
  const TargetScope target(device_ != nullptr ? device_->traits() : DeviceTraits());
  STRATA_RETURN_IF_ERROR(BindAll(traced, {}));
  STRATA_RETURN_IF_ERROR(Add(kStepGraph));
  if (config.accumulation_steps > 1) STRATA_RETURN_IF_ERROR(Add(kAccumulateGraph));
  STRATA_RETURN_IF_ERROR(Add(kOptimizerGraph));
  if (config.validator.enable) STRATA_RETURN_IF_ERROR(Add(kValidateGraph));
  // Takes the step's block: what plans try out while they are bound was given back.
  LendScratch(At(kOptimizerGraph));
  // Two blocks of the step would be there at once.
  At(kStepGraph).BeforeChange([this] { At(kOptimizerGraph).Borrow({}); });
  return Ok();
}

Status TrainingGraphs::BindAll(const TracedTraining& traced, std::span<const std::string> names) {
  const TargetScope target(device_ != nullptr ? device_->traits() : DeviceTraits());
  traced_ = &traced;
  options_.separate_outputs = !names.empty();
  for (const std::string& name : names)
    STRATA_RETURN_IF_ERROR(Add(name));
  ShareBlock();
  return Ok();
}

void TrainingGraphs::ShareBlock() {
  if (executors_.empty()) return;
  const auto largest = std::ranges::max_element(
      executors_, {}, [](const auto& entry) { return entry.second.planned_memory().held; });
  const ScratchMemory block = largest->second.scratch();
  for (auto& [name, executor] : executors_)
    if (&executor != &largest->second) executor.Borrow(block);
}

Status TrainingGraphs::Add(std::string_view name) {
  const Graph& graph = *traced_->module->FindGraph(name);
  STRATA_TRY(DynamicExecutor executor,
             DynamicExecutor::Create(graph, [this, &graph](const SymbolSizes& sizes) {
               return MakeExecutor(graph, sizes, traced_->constants, options_, warnings_, device_);
             }));
  executors_.emplace_back(name, std::move(executor));
  return Ok();
}

const DynamicExecutor* TrainingGraphs::Find(std::string_view graph) const {
  const auto found =
      std::ranges::find(executors_, graph, [](const auto& entry) { return entry.first; });
  return found == executors_.end() ? nullptr : &found->second;
}

DynamicExecutor& TrainingGraphs::At(std::string_view graph) {
  const auto found =
      std::ranges::find(executors_, graph, [](const auto& entry) { return entry.first; });
  STRATA_CHECK(found != executors_.end(), "graph {} was not made", graph);
  return found->second;
}

Result<std::vector<at::Tensor>> TrainingGraphs::Run(std::string_view graph,
                                                    std::span<const at::Tensor> inputs) {
  DynamicExecutor& executor = At(graph);
  const std::string& name = executor.plan().graph;
  if (keep_inputs_) Keep(name, inputs);
  if (graph == kOptimizerGraph) LendScratch(executor);
  if (observer_ != nullptr) {
    observer_->BeginGraph(*traced_->module->FindGraph(graph));
    return executor.Run(inputs, observer_);
  }
  if (!profile_) return executor.Run(inputs);
  NodeProfiler& profiler = profilers_[name];
  profiler.BeginRun(profile_values_);
  auto outputs = executor.Run(inputs, &profiler);
  profiler.EndRun(executor.plan());
  return outputs;
}

void TrainingGraphs::LendScratch(DynamicExecutor& optimizer) {
  DynamicExecutor& step = At(kStepGraph);
  if (std::exchange(lent_after_, step.num_changes()) != step.num_changes())
    optimizer.Borrow(step.scratch());
}

void TrainingGraphs::Keep(const std::string& name, std::span<const at::Tensor> inputs) {
  const Graph& graph = *traced_->module->FindGraph(name);
  size_t next_input = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kPlaceholder) continue;
    // What several batches or graphs read is kept as the first of them read it.
    const at::Tensor& input = inputs[next_input];
    kept_inputs_.try_emplace(InputName(graph, node), input.is_cpu() ? input.clone() : input.cpu());
    ++next_input;
  }
}

bool TrainingGraphs::LendsOutputs(std::string_view graph) const {
  const DynamicExecutor* executor = Find(graph);
  return executor != nullptr && executor->lends_outputs();
}

std::vector<const Plan*> TrainingGraphs::StepPlans() const {
  std::vector<const Plan*> plans;
  for (const auto& [name, executor] : executors_)
    if (!IsValidation(name)) plans.push_back(&executor.plan());
  return plans;
}

std::vector<const Plan*> TrainingGraphs::ValidationPlans() const {
  std::vector<const Plan*> plans;
  for (const auto& [name, executor] : executors_)
    if (IsValidation(name)) plans.push_back(&executor.plan());
  return plans;
}

void TrainingGraphs::Profile(bool values) {
  profile_ = true;
  profile_values_ = values;
}

void TrainingGraphs::EndStep() {
  keep_inputs_ = false;
  profile_ = false;
  observer_ = nullptr;
}

std::vector<GraphProfile> TrainingGraphs::Profiles() const {
  std::vector<GraphProfile> profiles;
  for (const auto& [name, profiler] : profilers_) {
    const Graph& graph = *traced_->module->FindGraph(name);
    GraphProfile profile{.graph = name, .fingerprint = FingerprintOf(graph), .nodes = {}};
    const std::map<NodeId, NodeProfile> nodes = profiler.nodes();
    for (const NodeId node : graph.nodes()) {
      const auto found = nodes.find(node);
      if (found == nodes.end()) continue;
      profile.nodes.emplace_back(graph.node(node).stable_id, found->second);
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

std::vector<GraphKernels> TrainingGraphs::Kernels() const {
  std::vector<GraphKernels> all;
  for (const auto& [name, executor] : executors_) {
    if (IsValidation(name)) continue;
    std::vector<KernelAnnotation> kernels = executor.annotations();
    if (!kernels.empty())
      all.push_back({.graph = std::string(name), .kernels = std::move(kernels)});
  }
  return all;
}

/// The graphs run one after the other, and from the first batch of a step on there are its sums.
int64_t TrainingGraphs::PeakOf(int64_t (*transient_of)(const PlannedMemory&)) const {
  int64_t held = 0, transient = 0, sums = 0;
  for (const auto& [name, executor] : executors_) {
    const PlannedMemory memory = executor.planned_memory();
    held += memory.held + memory.constants;
    if (name == kStepGraph) {
      const bool accumulates = Find(kAccumulateGraph) != nullptr;
      const bool are_copies = accumulates && executor.lends_outputs();
      sums = are_copies ? GradientBytes(executor.plan()) : memory.outputs;
      transient = transient_of(memory) + (accumulates ? sums : 0);
    } else {
      const int64_t batch =
          name == kAccumulateGraph ? Find(kStepGraph)->planned_memory().outputs : 0;
      transient = std::max(transient, transient_of(memory) + sums + batch);
    }
  }
  return held + transient;
}

int64_t TrainingGraphs::planned_bytes() const {
  return PeakOf([](const PlannedMemory& memory) { return memory.transient; });
}

std::optional<int64_t> TrainingGraphs::planned_bytes_at_most() const {
  for (const auto& [name, executor] : executors_) {
    if (!executor.planned_memory().transient_at_most) return std::nullopt;
  }
  return PeakOf([](const PlannedMemory& memory) { return *memory.transient_at_most; });
}

}  // namespace strata
