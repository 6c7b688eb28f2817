#include "runtime/exec/step/running_step.h"

#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

thread_local RunningPlan* running = nullptr;

}  // namespace

RunningPlan::RunningPlan(const Plan& plan, std::function<size_t()> step)
    : plan_(plan), step_(std::move(step)), outer_(std::exchange(running, this)) {}

RunningPlan::~RunningPlan() {
  running = outer_;
}

std::string RunningPlan::CurrentNode() {
  if (running == nullptr) return {};
  const Plan& plan = running->plan_;
  const size_t index = running->step_();
  if (index >= plan.steps.size()) return {};
  const PlanStep& step = plan.steps[index];
  const bool is_named = !step.results.empty() && step.results[0] >= 0;
  return fmt::format("{} of graph {}, {}",
                     is_named ? plan.slots[static_cast<size_t>(step.results[0])].name : step.op,
                     plan.graph, step.where);
}

}  // namespace strata
