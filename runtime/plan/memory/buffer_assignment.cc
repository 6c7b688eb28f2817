#include "runtime/plan/memory/buffer_assignment.h"

#include <algorithm>
#include <utility>

#include "runtime/plan/in_flight.h"

namespace strata {

BufferAssignment::BufferAssignment(const Plan& plan)
    : plan_(plan),
      last_use_(plan.slots.size(), -1),
      is_written_(plan.slots.size(), false),
      request_of_(plan.slots.size(), -1) {
  const auto last_of = [&](int32_t slot) -> int32_t& {
    return last_use_[static_cast<size_t>(SlotAt(slot).storage)];
  };
  const InFlight in_flight = FindInFlight(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (!in_flight.held.empty()) {
      for (const int32_t slot : in_flight.held[i])
        last_of(slot) = static_cast<int32_t>(i);
    }
    // Without a result that shares it, any operand may be what is written.
    const bool is_told = std::ranges::any_of(step.results, [&](int32_t slot) { return slot >= 0; });
    step.ForEachOperand([&](int32_t slot) {
      last_of(slot) = static_cast<int32_t>(i);
      if (step.mutates && !is_told) is_written_[static_cast<size_t>(SlotAt(slot).storage)] = true;
    });
    for (const int32_t slot : step.results) {
      if (slot < 0) continue;
      last_of(slot) = std::max(last_of(slot), static_cast<int32_t>(i));
      if (step.mutates) is_written_[static_cast<size_t>(SlotAt(slot).storage)] = true;
    }
  }
  for (const int32_t slot : plan.outputs) {
    if (slot >= 0) last_of(slot) = kForever;
  }
  if (plan.options.keep_values) std::ranges::fill(last_use_, kForever);
}

bool BufferAssignment::is_output(int32_t owner) const {
  return std::ranges::any_of(
      plan_.outputs, [&](int32_t slot) { return slot >= 0 && SlotAt(slot).storage == owner; });
}

void BufferAssignment::Add(int32_t slot, int32_t step) {
  request_of_[static_cast<size_t>(slot)] = static_cast<int32_t>(requests_.size());
  const int32_t last = std::max(last_use(slot), step);
  requests_.push_back({.bytes = SlotAt(slot).layout->storage_bytes(),
                       .first = step,
                       .last = std::min(last, static_cast<int32_t>(plan_.steps.size()))});
}

void BufferAssignment::Share(int32_t slot, int32_t step,
                             const std::function<bool(int32_t operand)>& may_share) {
  const PlanStep& planned = plan_.steps[static_cast<size_t>(step)];
  int32_t chosen = -1;
  planned.ForEachOperand([&](int32_t operand) {
    const int32_t owner = SlotAt(operand).storage, request = RequestOf(operand);
    if (chosen >= 0 || request < 0 || last_use(owner) != step ||
        SlotAt(operand).layout != SlotAt(slot).layout ||
        requests_[static_cast<size_t>(request)].last != step ||
        SlotAt(owner).layout->storage_bytes() != SlotAt(slot).layout->storage_bytes() ||
        !may_share(operand)) {
      return;
    }
    bool is_free = true;
    planned.ForEachOperand([&](int32_t other) {
      if (SlotAt(other).storage == owner) {
        is_free = is_free && SlotAt(other).layout == SlotAt(slot).layout;
      }
    });
    for (const int32_t sibling : planned.results) {
      is_free = is_free && (sibling < 0 || sibling == slot || RequestOf(sibling) != request);
    }
    if (is_free) chosen = request;
  });
  if (chosen < 0) return;
  int32_t& own = request_of_[static_cast<size_t>(slot)];
  requests_[static_cast<size_t>(chosen)].last = requests_[static_cast<size_t>(own)].last;
  requests_[static_cast<size_t>(own)].bytes = 0;  // stays, so that numbers keep their meaning
  own = chosen;
}

BufferAssignment::Arena BufferAssignment::Assign() {
  memory_ = PlanMemory(requests_);
  Arena arena{.offsets = std::vector<int64_t>(plan_.slots.size(), -1), .bytes = memory_.bytes};
  for (size_t owner = 0; owner < request_of_.size(); ++owner) {
    if (request_of_[owner] >= 0) {
      arena.offsets[owner] = memory_.offsets[static_cast<size_t>(request_of_[owner])];
    }
  }
  return arena;
}

}  // namespace strata
