#include "runtime/plan/memory/buffer_assignment.h"

#include <algorithm>
#include <utility>

#include "runtime/plan/in_flight.h"

namespace strata {

BufferAssignment::BufferAssignment(const Plan& plan)
    : plan_(plan),
      last_use_(plan.slots.size()),
      is_written_(plan.slots.size(), false),
      request_of_(plan.slots.size(), -1) {
  const auto last_of = [&](SlotId slot) -> StepId& { return last_use_[SlotAt(slot).storage]; };
  const InFlight in_flight = FindInFlight(plan);
  for (const StepId id : IdsOf(plan.steps)) {
    const PlanStep& step = plan.steps[id];
    if (!in_flight.held.empty()) {
      for (const SlotId slot : in_flight.held[id])
        last_of(slot) = id;
    }
    // Without a result that shares it, any operand may be what is written.
    const bool is_told = !step.runs_bodies && std::ranges::any_of(step.results, [&](SlotId slot) {
      return slot.valid();
    });
    step.ForEachOperand([&](SlotId slot) {
      last_of(slot) = id;
      if (step.mutates && !is_told) is_written_[SlotAt(slot).storage] = true;
    });
    for (const SlotId slot : step.results) {
      if (!slot.valid()) continue;
      last_of(slot) = std::max(last_of(slot), id);
      if (step.mutates) is_written_[SlotAt(slot).storage] = true;
    }
  }
  for (const SlotId slot : plan.outputs) {
    if (slot.valid()) last_of(slot) = kForever;
  }
  if (plan.options.keep_values) std::ranges::fill(last_use_, kForever);
  for (const Plan::Input& input : plan.inputs) {
    const std::optional<PlanLayout>& layout = SlotAt(input.slot).layout;
    // Gaps between its elements may be another tensor's.
    const bool is_dense =
        layout && layout->num_elements() * ByteSize(layout->dtype) == layout->storage_bytes();
    if (input.is_donated && is_dense)
      donated_.push_back({.input = input.slot, .in_use_until = last_use(input.slot)});
  }
}

bool BufferAssignment::is_output(SlotId owner) const {
  return std::ranges::any_of(
      plan_.outputs, [&](SlotId slot) { return slot.valid() && SlotAt(slot).storage == owner; });
}

void BufferAssignment::Add(SlotId slot, StepId step) {
  request_of_[slot] = static_cast<int32_t>(requests_.size());
  const StepId last = std::min(std::max(last_use(slot), step), plan_.steps.end_id());
  requests_.push_back(
      {.bytes = SlotAt(slot).layout->storage_bytes(), .first = step.index, .last = last.index});
}

void BufferAssignment::Share(SlotId slot, StepId step,
                             const std::function<bool(SlotId operand)>& may_share) {
  if (request_of_[slot] < 0) return;  // it lies in a donated input
  const PlanStep& planned = plan_.steps[step];
  int32_t chosen = -1;
  planned.ForEachOperand([&](SlotId operand) {
    const SlotId owner = SlotAt(operand).storage;
    const int32_t request = RequestOf(operand);
    if (chosen >= 0 || request < 0 || last_use(owner) != step ||
        SlotAt(operand).layout != SlotAt(slot).layout ||
        requests_[static_cast<size_t>(request)].last != step.index ||
        SlotAt(owner).layout->storage_bytes() != SlotAt(slot).layout->storage_bytes() ||
        !may_share(operand)) {
      return;
    }
    bool is_free = true;
    planned.ForEachOperand([&](SlotId other) {
      if (SlotAt(other).storage == owner) {
        is_free = is_free && SlotAt(other).layout == SlotAt(slot).layout;
      }
    });
    for (const SlotId sibling : planned.results) {
      is_free = is_free && (!sibling.valid() || sibling == slot || RequestOf(sibling) != request);
    }
    if (is_free) chosen = request;
  });
  if (chosen < 0) return;
  int32_t& own = request_of_[slot];
  requests_[static_cast<size_t>(chosen)].last = requests_[static_cast<size_t>(own)].last;
  requests_[static_cast<size_t>(own)].bytes = 0;  // stays, so that numbers keep their meaning
  own = chosen;
}

SlotId BufferAssignment::TakeDonated(SlotId slot, StepId step) {
  if (last_use(slot) == kForever) return {};
  const PlanLayout& wanted = *SlotAt(slot).layout;
  Donated* smallest = nullptr;
  const auto bytes_of = [&](const Donated& donated) {
    return SlotAt(donated.input).layout->storage_bytes();
  };
  for (Donated& donated : donated_) {
    const bool fits = donated.in_use_until < step && bytes_of(donated) >= wanted.storage_bytes() &&
                      SlotAt(donated.input).layout->dtype == wanted.dtype;
    if (fits && (smallest == nullptr || bytes_of(donated) < bytes_of(*smallest)))
      smallest = &donated;
  }
  if (smallest == nullptr) return {};
  smallest->in_use_until = std::max(last_use(slot), step);
  return smallest->input;
}

BufferAssignment::Arena BufferAssignment::Assign() {
  memory_ = PlanMemory(requests_);
  Arena arena{.offsets = IdVector<SlotId, int64_t>(plan_.slots.size(), -1), .bytes = memory_.bytes};
  for (const SlotId owner : IdsOf(request_of_)) {
    if (request_of_[owner] >= 0) {
      arena.offsets[owner] = memory_.offsets[static_cast<size_t>(request_of_[owner])];
    }
  }
  return arena;
}

}  // namespace strata
