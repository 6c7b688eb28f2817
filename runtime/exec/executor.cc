#include "runtime/exec/executor.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/Version.h>

#include <fmt/format.h>

#include "runtime/aten/fast_products.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/boxed/boxed_program.h"
#include "runtime/exec/static/static_program.h"
#include "runtime/exec/step/running_step.h"
#include "runtime/flex/flex_attention.h"
#include "runtime/offload/offload_ops.h"
#include "runtime/plan/in_flight.h"
#include "runtime/ranks/collectives.h"
#include "runtime/ranks/rank_team.h"

namespace strata {
namespace {

bool Fits(const at::Tensor& tensor, const Plan::Input& wanted) {
  return tensor.defined() && ToDType(tensor.scalar_type()) == wanted.dtype &&
         std::ranges::equal(tensor.sizes(), wanted.sizes,
                            [](int64_t size, int64_t expected) {
                              return size == expected || expected == kAnySize;
                            }) &&
         (!wanted.strides || tensor.strides() == at::IntArrayRef(*wanted.strides));
}

/// Whether ATen's kernels are compiled for processors with fused multiply-adds.
bool AtenContracts() {
#if defined(__x86_64__)
  return at::get_cpu_capability().starts_with("AVX");
#else
  return true;
#endif
}

/// As types are printed: `f32[4, 32][32, 1]cpu`.
std::string DescribeTensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return fmt::format("{}{}{}{}", ShortName(ToDType(tensor.scalar_type())), c10::str(tensor.sizes()),
                     c10::str(tensor.strides()), tensor.device().str());
}

}  // namespace

struct Executor::State {
  Plan plan;
  BodyPrograms bodies;
  bool overlaps = false;  // collectives, with the steps up to their waits
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<StaticProgram> program;  // of a static plan
  std::unique_ptr<BoxedProgram> boxed;     // of a plain one, or of one on a device

  Status CheckInputs(std::span<const at::Tensor> inputs) const {
    if (inputs.size() != plan.inputs.size()) {
      return Error(ErrorCode::kInternal, "graph {} has {} inputs, not {}", plan.graph,
                   plan.inputs.size(), inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Plan::Input& wanted = plan.inputs[i];
      const PlanSlot& slot = plan.slots[wanted.slot];
      if (!Fits(inputs[i], wanted)) {
        return Error(ErrorCode::kInternal, "input {} of graph {} is {}, not {}", slot.name,
                     plan.graph, DescribeTensor(inputs[i]), slot.type);
      }
    }
    return Ok();
  }

  Error Failure(StepId index, const std::exception& failure) const {
    const PlanStep& step = plan.steps[index];
    const auto* torch_error = dynamic_cast<const c10::Error*>(&failure);
    std::string why = torch_error != nullptr ? torch_error->what_without_backtrace()
                                             : std::string(failure.what());
    why.resize(std::min({why.size(), why.find('\n'), why.find(". This could be because")}));
    return Error(ErrorCode::kInternal, "graph {} failed: {}: {}: {}", plan.graph, step.where,
                 Describe(plan, step), why);
  }
};

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

const Plan& Executor::plan() const {
  return state_->plan;
}

bool Executor::reuses_outputs() const {
  return state_->boxed && state_->boxed->reuses_outputs();
}

bool Executor::lends_outputs() const {
  return state_->program ? state_->program->lends_outputs() : reuses_outputs();
}

std::vector<KernelAnnotation> Executor::annotations() const {
  return state_->boxed ? state_->boxed->annotations() : std::vector<KernelAnnotation>();
}

ScratchMemory Executor::scratch() {
  return state_->program ? state_->program->scratch() : ScratchMemory();
}

MemoryBlock Executor::TakeBlock() {
  return state_->program ? state_->program->TakeBlock() : MemoryBlock();
}

void Executor::GiveBlock(MemoryBlock block) {
  if (state_->program) state_->program->GiveBlock(std::move(block));
}

void Executor::Borrow(const ScratchMemory& scratch) {
  if (state_->program) state_->program->Borrow(scratch);
}

PlannedMemory Executor::planned_memory() const {
  return state_->program ? state_->program->planned_memory() : state_->boxed->planned_memory();
}

void RegisterPlanOperators() {
  RegisterFlexAttention();
  RegisterCollectives();
  RegisterOffloadOps();
  RegisterFastProducts();
}

namespace {

class BoundBody final : public BodyProgram {
 public:
  explicit BoundBody(Executor executor) : executor_(std::move(executor)) {}

  std::vector<at::Tensor> Run(std::span<const at::Tensor> operands) override {
    std::vector<at::Tensor> inputs;
    for (const Plan::Input& input : executor_.plan().inputs)
      inputs.push_back(operands[input.placeholder]);
    auto results = executor_.Run(inputs);
    if (!results) throw std::runtime_error(results.error().message());
    return std::move(results).value();
  }

 private:
  Executor executor_;
};

}  // namespace

Result<BodyPrograms> BindBodies(const Plan& plan, const Constants& constants) {
  BodyPrograms bodies;
  for (const Plan& body : plan.bodies) {
    STRATA_TRY(Executor executor, Executor::Bind(body, constants));
    bodies.Add(std::make_unique<BoundBody>(std::move(executor)));
  }
  return bodies;
}

Result<Executor> Executor::Bind(Plan plan, const Constants& constants, const ScratchMemory& scratch,
                                Device* device) {
  RegisterPlanOperators();  // the plan looks for operators once
  auto state = std::make_unique<State>();
  if (device == nullptr && (plan.options.is_static() || !plan.kernels.empty())) {
    if (!plan.kernels.empty() || !plan.flex_kernels.empty()) {
      STRATA_TRY(
          state->kernels,
          KernelLibrary::Load(plan.kernels.values(), plan.flex_kernels.values(),
                              {.cache_dir = {}, .compiler = {}, .contracts = AtenContracts()}));
    }
    state->plan = std::move(plan);
    STRATA_TRY(state->bodies, BindBodies(state->plan, constants));
    STRATA_TRY(state->program, StaticProgram::Bind(state->plan, constants, state->kernels.get(),
                                                   state->bodies, scratch));
    state->overlaps = FindInFlight(state->plan).is_overlapped;
    return Executor(std::move(state));
  }
  state->plan = std::move(plan);
  STRATA_TRY(state->bodies, BindBodies(state->plan, constants));
  STRATA_TRY(state->boxed, BoxedProgram::Bind(state->plan, constants, device, &state->bodies));
  return Executor(std::move(state));
}

Result<std::vector<at::Tensor>> Executor::Run(std::span<const at::Tensor> inputs,
                                              ExecutionObserver* observer) {
  STRATA_RETURN_IF_ERROR(state_->CheckInputs(inputs));
  const auto run = [&](auto& program) -> Result<std::vector<at::Tensor>> {
    const RunningPlan running(state_->plan, [&] { return program.failed_step(); });
    try {
      const bool reads_results = observer != nullptr && observer->ReadsResults();
      const AsyncCollectives async(state_->overlaps && !reads_results);
      return program.Run(inputs, observer);
    } catch (const std::exception& failure) {
      const Error error = state_->Failure(program.failed_step(), failure);
      program.Reset();
      return error;
    }
  };
  return state_->program ? run(*state_->program) : run(*state_->boxed);
}

}  // namespace strata
