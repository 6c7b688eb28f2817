#include "runtime/plan/device/schedule.h"

#include <algorithm>

namespace strata {
namespace {

/// Who touched a storage since it was last written.
struct Touch {
  int32_t writer = -1;
  std::vector<int32_t> readers;
};

size_t StorageOf(const Plan& plan, int32_t slot) {
  return static_cast<size_t>(plan.slots[static_cast<size_t>(slot)].storage);
}

/// The storages that a step reads and writes.
struct Access {
  std::vector<size_t> reads, writes;
};

Access AccessOf(const Plan& plan, const PlanStep& step) {
  Access access;
  step.ForEachOperand([&](int32_t slot) { access.reads.push_back(StorageOf(plan, slot)); });
  for (const int32_t slot : step.results) {
    if (slot >= 0) access.writes.push_back(StorageOf(plan, slot));
  }
  if (step.kernel >= 0) {
    for (const int32_t input : plan.kernels[static_cast<size_t>(step.kernel)].written_inputs)
      access.writes.push_back(access.reads[static_cast<size_t>(input)]);
  } else if (step.mutates && access.writes.empty()) {
    access.writes = access.reads;  // no result says which operand
  }
  return access;
}

/// A view is another name for memory: it issues nothing.
bool IssuesWork(const PlanStep& step) {
  return !step.is_view;
}

}  // namespace

std::vector<StreamStep> StreamStepsOf(const Plan& plan) {
  std::vector<Touch> touches(plan.slots.size());
  std::vector<StreamStep> steps;
  for (const PlanStep& planned : plan.steps) {
    StreamStep& step = steps.emplace_back();
    if (!IssuesWork(planned)) continue;
    const auto index = static_cast<int32_t>(steps.size()) - 1;
    step.stream = planned.stream;
    const Access access = AccessOf(plan, planned);
    for (const size_t storage : access.reads) {
      if (touches[storage].writer >= 0) step.after.push_back(touches[storage].writer);
    }
    for (const size_t storage : access.writes) {
      if (touches[storage].writer >= 0) step.after.push_back(touches[storage].writer);
      step.after.insert(step.after.end(), touches[storage].readers.begin(),
                        touches[storage].readers.end());
    }
    for (const size_t storage : access.reads)
      touches[storage].readers.push_back(index);
    for (const size_t storage : access.writes)
      touches[storage] = {.writer = index, .readers = {}};
    std::ranges::sort(step.after);
    step.after.erase(std::ranges::unique(step.after).begin(), step.after.end());
  }
  return steps;
}

DeviceSchedule ScheduleOnDevice(const Plan& plan) {
  const std::vector<StreamStep> steps = StreamStepsOf(plan);
  DeviceSchedule schedule;
  schedule.streams = AssignEvents(steps);
  for (size_t i = 0, event = 0; i < steps.size(); ++i)
    schedule.events.push_back(schedule.streams.records[i] ? static_cast<int32_t>(event++) : -1);
  if (!schedule.streams.forks.empty()) schedule.start_event = schedule.streams.num_events - 1;

  // Memory by storage: that of inputs and constants is the caller's, of stream 0.
  std::vector<StreamMemory> memory(plan.slots.size());
  std::vector<bool> is_made(plan.slots.size(), false);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (!IssuesWork(step)) continue;
    const Access access = AccessOf(plan, step);
    for (const size_t storage : access.writes) {
      if (!is_made[storage]) memory[storage].stream = step.stream;
      is_made[storage] = true;
    }
    for (const std::vector<size_t>* touched : {&access.reads, &access.writes}) {
      for (const size_t storage : *touched)
        memory[storage].used_by.push_back(static_cast<int32_t>(i));
    }
  }
  for (const Plan::Input& input : plan.inputs)
    memory[StorageOf(plan, input.slot)].stream = 0;
  for (const Plan::Constant& constant : plan.constants)
    memory[StorageOf(plan, constant.slot)].stream = 0;
  const std::vector<int32_t> safe = PlanReleases(steps, schedule.streams, memory);

  schedule.releases.resize(steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const int32_t slot : plan.steps[i].kills) {
      const StreamMemory& piece = memory[StorageOf(plan, slot)];
      const bool is_shared = std::ranges::any_of(piece.used_by, [&](int32_t use) {
        return steps[static_cast<size_t>(use)].stream != piece.stream;
      });
      const size_t at =
          is_shared ? std::max(i, static_cast<size_t>(safe[StorageOf(plan, slot)])) : i;
      (at < steps.size() ? schedule.releases[at] : schedule.last_releases).push_back(slot);
    }
  }
  return schedule;
}

std::vector<bool> WrittenInputs(const Plan& plan) {
  std::vector<bool> is_written(plan.slots.size(), false);
  for (const PlanStep& step : plan.steps) {
    if (!IssuesWork(step)) continue;
    for (const size_t storage : AccessOf(plan, step).writes)
      is_written[storage] = true;
  }
  std::vector<bool> inputs;
  for (const Plan::Input& input : plan.inputs)
    inputs.push_back(is_written[StorageOf(plan, input.slot)]);
  return inputs;
}

}  // namespace strata
