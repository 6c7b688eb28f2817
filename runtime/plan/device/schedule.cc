#include "runtime/plan/device/schedule.h"

#include <algorithm>

namespace strata {
namespace {

/// Who touched a storage since it was last written.
struct Touch {
  int32_t writer = -1;
  std::vector<int32_t> readers;
};

SlotId StorageOf(const Plan& plan, SlotId slot) {
  return plan.slots[slot].storage;
}

/// The storages that a step reads and writes, by the slots that own them.
struct Access {
  std::vector<SlotId> reads, writes;
};

Access AccessOf(const Plan& plan, const PlanStep& step) {
  Access access;
  step.ForEachOperand([&](SlotId slot) { access.reads.push_back(StorageOf(plan, slot)); });
  for (const SlotId slot : step.results) {
    if (slot.valid()) access.writes.push_back(StorageOf(plan, slot));
  }
  if (step.kernel.valid()) {
    for (const int32_t input : plan.kernels[step.kernel].written_inputs)
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
  IdVector<SlotId, Touch> touches(plan.slots.size());
  std::vector<StreamStep> steps;
  int32_t last_computed = -1;
  for (const PlanStep& planned : plan.steps) {
    StreamStep& step = steps.emplace_back();
    if (!IssuesWork(planned)) continue;
    const auto index = static_cast<int32_t>(steps.size()) - 1;
    step.stream = planned.stream;
    if (step.stream == kCommunicationStream && last_computed >= 0)
      step.after.push_back(last_computed);
    if (step.stream == 0) last_computed = index;
    const Access access = AccessOf(plan, planned);
    for (const SlotId storage : access.reads) {
      if (touches[storage].writer >= 0) step.after.push_back(touches[storage].writer);
    }
    for (const SlotId storage : access.writes) {
      if (touches[storage].writer >= 0) step.after.push_back(touches[storage].writer);
      step.after.insert(step.after.end(), touches[storage].readers.begin(),
                        touches[storage].readers.end());
    }
    for (const SlotId storage : access.reads)
      touches[storage].readers.push_back(index);
    for (const SlotId storage : access.writes)
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
    schedule.events.Add(schedule.streams.records[i] ? static_cast<int32_t>(event++) : -1);
  if (!schedule.streams.forks.empty()) schedule.start_event = schedule.streams.num_events - 1;

  // Memory by storage: that of inputs and constants is the caller's, of stream 0.
  IdVector<SlotId, StreamMemory> memory(plan.slots.size());
  IdVector<SlotId, bool> is_made(plan.slots.size(), false);
  for (const StepId id : IdsOf(plan.steps)) {
    const PlanStep& step = plan.steps[id];
    if (!IssuesWork(step)) continue;
    const Access access = AccessOf(plan, step);
    for (const SlotId storage : access.writes) {
      if (!is_made[storage]) memory[storage].stream = step.stream;
      is_made[storage] = true;
    }
    for (const std::vector<SlotId>* touched : {&access.reads, &access.writes}) {
      for (const SlotId storage : *touched)
        memory[storage].used_by.push_back(id.index);
    }
  }
  for (const Plan::Input& input : plan.inputs)
    memory[StorageOf(plan, input.slot)].stream = 0;
  for (const Plan::Constant& constant : plan.constants)
    memory[StorageOf(plan, constant.slot)].stream = 0;
  const std::vector<int32_t> safe = PlanReleases(steps, schedule.streams, memory.values());

  schedule.releases.resize(steps.size());
  for (const StepId id : IdsOf(plan.steps)) {
    for (const SlotId slot : plan.steps[id].kills) {
      const SlotId storage = StorageOf(plan, slot);
      const StreamMemory& piece = memory[storage];
      const bool is_shared = std::ranges::any_of(piece.used_by, [&](int32_t use) {
        return steps[static_cast<size_t>(use)].stream != piece.stream;
      });
      const StepId safe_after{safe[static_cast<size_t>(storage.index)]};
      const StepId at = is_shared ? std::max(id, safe_after) : id;
      (at < plan.steps.end_id() ? schedule.releases[at] : schedule.last_releases).push_back(slot);
    }
  }
  return schedule;
}

std::vector<bool> WrittenInputs(const Plan& plan) {
  IdVector<SlotId, bool> is_written(plan.slots.size(), false);
  for (const PlanStep& step : plan.steps) {
    if (!IssuesWork(step)) continue;
    for (const SlotId storage : AccessOf(plan, step).writes)
      is_written[storage] = true;
  }
  std::vector<bool> inputs;
  for (const Plan::Input& input : plan.inputs)
    inputs.push_back(is_written[StorageOf(plan, input.slot)]);
  return inputs;
}

}  // namespace strata
