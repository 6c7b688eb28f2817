#include "runtime/exec/step/running_step.h"

#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

thread_local RunningPlan* running = nullptr;

}  // namespace

RunningPlan::RunningPlan(const Plan& plan, std::function<StepId()> step)
    : plan_(plan), step_(std::move(step)), outer_(std::exchange(running, this)) {}

RunningPlan::~RunningPlan() {
  running = outer_;
}

std::string RunningPlan::CurrentNode() {
  if (running == nullptr) return {};
  const Plan& plan = running->plan_;
  const StepId id = running->step_();
  if (id >= plan.steps.end_id()) return {};
  const PlanStep& step = plan.steps[id];
  const bool is_named = !step.results.empty() && step.results[0].valid();
  const std::string& name = is_named ? plan.slots[step.results[0]].name : step.op;
  const std::string place = fmt::format("{} of graph {}", name, plan.graph);
  return step.where == name ? place : place + ", " + step.where;
}

}  // namespace strata
